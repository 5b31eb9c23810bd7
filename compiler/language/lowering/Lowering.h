// The walk over a typed program that makes the operations of the tile dialect. Its parts are in Lower*.cpp.
// Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/types/Shapes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>

namespace nsa::language {

class Lowering {
public:
  Lowering(const Program &program, mlir::MLIRContext &context, Diagnostics &diagnostics)
      : program(program), shapes(program), diagnostics(diagnostics), builder(&context) {}

  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  // Scalar code in the region of an access: the same formulas, of one row.
  struct Row {
    const Axis *rowAxis, *outerAxis;
    mlir::Value row, outer;
    llvm::DenseMap<const Value *, mlir::Value> values;
  };

  // --- program and control (Lower.cpp, LowerControl.cpp)
  void arguments(mlir::func::FuncOp function);
  void body(const Body *block);
  bool hasWholeColumns(const Value *value);
  void statement(const Value *value);
  void loop(const Value *value);
  void branch(const Value *value);
  mlir::Location resultsLocation(llvm::ArrayRef<llvm::StringRef> names, const SourceRange &range);
  void yield(std::span<Value *const> values, std::span<Value *const> types, const SourceRange &range);

  // --- values (LowerElements.cpp)
  mlir::Location locationOf(const Value *value);
  mlir::Location location(const SourceRange &range, std::string_view name = {});
  mlir::Type elementType(Element element);
  mlir::RankedTensorType tileType(const Shape &shape, Element element);
  mlir::Type typeOf(const Value *value);
  int64_t rowsOf(const Shape &shape) const;
  mlir::Value constant(const Constant &number, Element element);
  mlir::Value integer(int64_t number) { return constant(Constant::ofInteger(number), Element::kI32); }
  // A value that stands in a block, or a constant.
  mlir::Value scalar(const Value *value);
  // A value as a tile of this shape.
  mlir::Value tileAt(const Value *value, const Shape &shape);
  mlir::Value formulaTile(const Value *formula, const Shape &shape);
  mlir::Value loadedFormula(const Value *formula, const Shape &shape);
  mlir::Value splat(mlir::Value scalar, mlir::RankedTensorType type);
  // A tile of one value a row or a column, which goes to all columns or rows of a matrix.
  mlir::Value broadcast(mlir::Value vector, const Shape &shape);
  mlir::Value denseConstant(const Constant &number, Element element, const Shape &shape);
  // One operation of elements, of scalars or tiles alike.
  mlir::Value element(const Value *value, llvm::ArrayRef<mlir::Value> operands, mlir::Type type, mlir::Location loc);
  mlir::Value castElement(mlir::Value operand, Element from, Element to, mlir::Type type, mlir::Location loc);
  mlir::Value comparison(const Value *value, llvm::ArrayRef<mlir::Value> operands, mlir::Location loc);

  // --- memory (LowerMemory.cpp)
  mlir::Value rowValue(const Value *value, Row &row);
  // Fills the region of an access with the coordinates of a row and whether it exists.
  void rowRegion(mlir::Region &region, const Access &access, const SourceRange &range, bool onlyFirst,
                 mlir::Value *fieldOfRecord = nullptr);
  mlir::Value existence(const Access &access, Row &row, const SourceRange &range);
  void load(const Value *value);
  void store(const Value *value);
  void storeRecord(const Value *value);

  // --- tiles (LowerTiles.cpp)
  void mask(const Value *value);
  void fill(const Value *value);
  void dot(const Value *value);
  void reduce(const Value *value);
  void shift(const Value *value);
  void insert(const Value *value);
  void next(const Value *value);
  // Which sides of a product are given with their rows and columns exchanged.
  struct Transposed {
    bool left, right;
  };
  mlir::Value product(const Value *value, mlir::Value left, mlir::Value right, mlir::Value initial, mlir::Value from,
                      Transposed transposed, bool annihilates, mlir::Location loc);

  void refuse(const SourceRange &range, std::string text) { diagnostics.error(range, std::move(text)); }
  // What is made of a value that was refused is not made, either. That needs no message.
  void refuseUnmade(const Value *value, std::string why) {
    if (!diagnostics.hasErrors())
      refuse(value->range, std::move(why));
  }
  void refuseUnmade(const Value *value) {
    refuseUnmade(
        value,
        value->op == Op::kPick
            ? "a place along '" + std::string(value->operands[0]->access->outerAxis->name) +
                  "' is not known before the program runs: only the right side of a product takes picked rows yet"
            : "this value of " + program.typeText(*value) + " cannot be computed here yet");
  }
  // The value is needed as a tile of this shape, which it cannot become.
  void refuseShape(const Value *value, const Shape &shape);
  static std::string textOf(const Shape &shape) {
    return "[" + std::string(shape.rows ? shape.rows->name : "") + (shape.rows && shape.columns ? ", " : "") +
           std::string(shape.columns ? shape.columns->name : "") + "]";
  }

  const Program &program;
  Shapes shapes;
  Diagnostics &diagnostics;
  mlir::OpBuilder builder;
  mlir::Block *entry = nullptr; // of the function: constants stand at its begin
  llvm::DenseMap<const Value *, mlir::Value> values;
  llvm::DenseMap<const Tensor *, mlir::Value> tensorArguments;
  llvm::DenseMap<const ScalarArgument *, mlir::Value> scalarArguments;
  llvm::DenseMap<const Value *, mlir::Value> chunks;        // the numbers of a loop by chunks, by its index
  llvm::DenseMap<const Value *, mlir::Operation *> results; // of loops and branches
  std::map<std::pair<Element, int64_t>, mlir::Value> integers;
  // Formulas as tiles, once for each block that needs them.
  struct TileKey {
    const Value *formula;
    const Axis *rows, *columns;
    bool isColumnVector;
    mlir::Block *block;
    auto operator<=>(const TileKey &) const = default;
  };
  std::map<TileKey, mlir::Value> tiles;
  llvm::SmallPtrSet<const Axis *, 4> refusedColumns; // axes of which it was said that they are no axes of columns
};

} // namespace nsa::language
