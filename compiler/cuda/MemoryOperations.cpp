// KernelEmitter: loads, copies and stores of tiles. Each of them is one call into the device library, with a lambda
// that tells the place of each row.
#include "compiler/cuda/KernelEmitter.h"

#include "compiler/dialect/TileProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nsa::tile;

namespace nsa::cuda {

// The first column of a chunk, and how many columns of the tile exist.
FailureOr<KernelEmitter::ColumnsText> KernelEmitter::columnsText(const TileColumns &columns) {
  ColumnsText result;
  if (columns.count)
    result.count = std::to_string(*columns.count);
  if (!columns.chunk)
    return result;
  FailureOr<SmallVector<CudaExpression>> operands = expressions({columns.chunk, columns.rowColumns});
  if (failed(operands))
    return failure();
  if ((*operands)[0].text == "0") {
    result.count = columns.count ? result.count : (*operands)[1].text;
    return result;
  }
  CudaExpression first = cudaBinary((*operands)[0], "*", {std::to_string(columns.width)}, Precedence::kMultiply);
  result.first = first.text;
  if (!columns.count)
    result.count = cudaBinary((*operands)[1], "-", first, Precedence::kAdd).text;
  return result;
}

static bool isPaged(Value view) { return cast<ViewType>(view.getType()).isPaged(); }

// A lambda that tells the place of each row of a tile in a view, and the first of its columns. For a view of pages the
// lambda first tells whether the row exists, because the table has no page for a row that does not exist.
FailureOr<std::string> KernelEmitter::rowsLambda(Region &rows, AtOp at, Value view, const std::string &firstColumn) {
  FailureOr<std::string> viewText = text(view);
  if (failed(viewText))
    return failure();
  CudaNames::Scope scope(names);
  // The number of the row, and for a store with places the place of the row.
  SmallVector<std::string> parameters;
  for (BlockArgument argument : rows.getArguments()) {
    std::string name = names.declare(argument, argument.getArgNumber() == 0 ? "row" : "place");
    values[argument] = {name};
    parameters.push_back("int32 " + name);
  }
  return lambda(llvm::join(parameters, ", "), rows.front(), [&]() -> FailureOr<std::string> {
    FailureOr<SmallVector<CudaExpression>> coordinates = expressions(at.getCoordinates());
    FailureOr<std::string> exists = text(at.getExists());
    if (failed(coordinates) || failed(exists))
      return failure();
    bool isConditional = *exists != "true", asksFirst = isConditional && isPaged(view);
    CudaCall call{*viewText + (asksFirst ? ".at_if" : ".at"), {}};
    if (asksFirst)
      call.arguments.push_back(*exists);
    for (CudaExpression &coordinate : *coordinates)
      call.arguments.push_back(std::move(coordinate.text));
    return call.text() + (firstColumn.empty() ? "" : ".from_column(" + firstColumn + ")") +
           (isConditional && !asksFirst ? ".only_if(" + *exists + ")" : "");
  });
}

// Whether `value` grows by the same amount from each row to the next, or does not depend on the row.
static bool isEven(Value value, Region &rows) {
  auto isFixed = [&](Value operand) { return !rows.isAncestor(operand.getParentRegion()); };
  if (value == rows.getArgument(0) || isFixed(value))
    return true;
  if (auto sum = value.getDefiningOp<arith::AddIOp>())
    return isEven(sum.getLhs(), rows) && isEven(sum.getRhs(), rows);
  IntegerAttr factor;
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return isEven(product.getLhs(), rows) && matchPattern(product.getRhs(), m_Constant(&factor)) && factor.getInt() > 0;
  auto difference = value.getDefiningOp<arith::SubIOp>();
  return difference && isEven(difference.getLhs(), rows) && isFixed(difference.getRhs());
}

// The text of a buffer, or of one stage of a ring.
FailureOr<std::string> KernelEmitter::placeText(Value buffer, Value stage) {
  FailureOr<std::string> place = text(buffer);
  if (failed(place) || !stage)
    return place;
  FailureOr<std::string> stageText = text(stage);
  if (failed(stageText))
    return failure();
  return *place + "[" + *stageText + "]";
}

// Copies from global to shared memory. It only starts the copy.
LogicalResult KernelEmitter::emitCopy(CopyOp op) {
  FailureOr<std::string> target = placeText(op.getBuffer(), op.getStage());
  FailureOr<std::string> view = text(op.getView());
  FailureOr<ColumnsText> columns = columnsText(op.getTileColumns());
  if (failed(target) || failed(view) || failed(columns))
    return failure();
  FailureOr<std::string> rows = rowsLambda(op.getRows(), op.getAt(), op.getView(), columns->first);
  if (failed(rows))
    return failure();
  include("copy.cuh");
  // Rows in different pages are not evenly spaced.
  bool isEvenlySpaced = !isPaged(op.getView()) && llvm::all_of(op.getAt().getCoordinates(), [&](Value coordinate) {
    return isEven(coordinate, op.getRows());
  });
  std::string rowOf = isEvenlySpaced ? "evenly_spaced(" + *rows + ")" : *rows;
  statement("", {"load_tile<kThreads>", {*target, *view, columns->count, rowOf}});
  return success();
}

LogicalResult KernelEmitter::emitRead(ReadOp op) {
  FailureOr<std::string> place = placeText(op.getBuffer(), op.getStage());
  if (failed(place))
    return failure();
  if (layoutOf(op) == Layout::OperandA) {
    FailureOr<std::string> type = tileType(op);
    if (failed(type))
      return failure();
    include("dot.cuh");
    define(op, "const auto", {"load_operand<" + *type + ">", {*place}});
  } else if (op.getStage()) {
    std::string name = names.declare(op.getTile(), "tile");
    writer.line("const auto " + name + " = " + *place + ";");
    values[op] = {name};
  } else {
    values[op] = {*place};
  }
  if (op.getStage() && !isa<ReadOp>(op->getNextNode()))
    writer.gap();
  return success();
}

LogicalResult KernelEmitter::emitWrite(Operation &op) {
  // The operands are a tile in registers and a buffer.
  FailureOr<SmallVector<CudaExpression>> operands = expressions(op.getOperands());
  if (failed(operands) || failed(tileType(op.getOperand(0))))
    return failure();
  CudaCall call{"write_tile", {(*operands)[0].text, (*operands)[1].text}};
  if (auto partials = dyn_cast<WritePartialsOp>(op))
    call.callee = ("write_partials_" + stringifyReduceKind(partials.getKind())).str();
  if (layoutOf(op.getOperand(0)) != Layout::Striped)
    include(isa<WriteOp>(op) ? "write_tile.cuh" : "column.cuh");
  statement("", call);
  return success();
}

FailureOr<CudaCall> KernelEmitter::loadCall(LoadOp op) {
  FailureOr<std::string> type = tileType(op);
  FailureOr<std::string> view = text(op.getView());
  FailureOr<ColumnsText> columns = columnsText(op.getTileColumns());
  if (failed(type) || failed(view) || failed(columns))
    return failure();
  FailureOr<std::string> rows = rowsLambda(op.getRows(), op.getAt(), op.getView(), columns->first);
  if (failed(rows))
    return failure();
  include("copy.cuh");
  if (typeOf(op).getRank() == 1)
    return CudaCall{(isColumnVector(op.getType()) ? "load_columns<" : "load_rows<") + *type + ">", {*view, *rows}};
  return CudaCall{"load_fragment<" + *type + ">", {*view, columns->count, *rows}};
}

LogicalResult KernelEmitter::emitStore(StoreOp op) {
  if (failed(tileType(op.getTile())))
    return failure();
  FailureOr<std::string> tile = text(op.getTile());
  FailureOr<std::string> view = text(op.getView());
  FailureOr<ColumnsText> columns = columnsText(op.getTileColumns());
  if (failed(tile) || failed(view) || failed(columns))
    return failure();
  FailureOr<std::string> rows = rowsLambda(op.getRows(), op.getAt(), op.getView(), columns->first);
  if (failed(rows))
    return failure();
  include("copy.cuh");
  CudaCall call{"store_tile", {*tile, *view, columns->count, *rows}};
  if (typeOf(op.getTile()).getRank() == 1)
    call = {isColumnVector(op.getTile().getType()) ? "store_columns" : "store_rows", {*tile, *view, *rows}};
  if (Value places = op.getPlaces()) {
    FailureOr<std::string> placesText = text(places);
    if (failed(tileType(places)) || failed(placesText))
      return failure();
    call.arguments.push_back(*placesText);
  }
  statement("", call);
  return success();
}

} // namespace nsa::cuda
