#include "compiler/dialect/RowAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace nsa::tile {

bool isMultiple(Value columns, int64_t width) {
  IntegerAttr constant;
  if (matchPattern(columns, m_Constant(&constant)))
    return constant.getInt() % width == 0;
  auto choice = columns.getDefiningOp<arith::SelectOp>();
  return choice && isMultiple(choice.getTrueValue(), width) && isMultiple(choice.getFalseValue(), width);
}

LogicalResult verifyRows(Operation *op, Region &rows, ViewType view, bool isPlaced) {
  Block &block = rows.front();
  if (block.getNumArguments() != (isPlaced ? 2 : 1) ||
      llvm::any_of(block.getArgumentTypes(), [](Type type) { return !type.isInteger(32); }))
    return op->emitOpError(isPlaced ? "has a region of two arguments, the i32 number of the row and its i32 place"
                                    : "has a region of one argument, the i32 number of the row");
  auto at = dyn_cast<AtOp>(block.getTerminator());
  if (!at)
    return op->emitOpError("has a region that ends in tile.at");
  if (at.getCoordinates().size() != view.getRank())
    return at.emitOpError() << "has " << at.getCoordinates().size() << " coordinates for a view of " << view.getRank();
  // The region runs once per row in the thread that copies the row, in any order. So it may read memory, but it must
  // have no other effect.
  WalkResult walk = rows.walk([&](Operation *nested) {
    bool allowed = isa<AtOp, LoadScalarOp>(nested) || isMemoryEffectFree(nested);
    bool scalar = llvm::none_of(nested->getResultTypes(), llvm::IsaPred<ShapedType>);
    if (allowed && scalar)
      return WalkResult::advance();
    nested->emitOpError("cannot stand in the region of a row: only scalar code without side effects can");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

} // namespace nsa::tile
