// The operations of a scheduled program.
#include "compiler/dialect/RowAccess.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace nsa::tile;

//===----------------------------------------------------------------------===//
// Tiles in shared memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyStage(Operation *op, BufferType buffer, Value stage) {
  if (buffer.isRing() == bool(stage))
    return success();
  return op->emitOpError() << (stage ? "names a stage of " : "names no stage of ") << buffer
                           << "; a stage is named where a buffer has more than one";
}

void CopyOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setName(region.getArgument(0), "row");
}

LogicalResult CopyOp::verify() {
  BufferType buffer = getBuffer().getType();
  return failure(failed(verifyStage(*this, buffer, getStage())) || failed(verifyRowAccess(*this, buffer.getTile())));
}
LogicalResult CopyOp::verifyRegions() { return verifyRows(*this, getRows(), getView().getType()); }
AtOp CopyOp::getAt() { return cast<AtOp>(getRows().front().getTerminator()); }
TileColumns CopyOp::getTileColumns() { return tileColumns(*this, getBuffer().getType().getTile()); }

LogicalResult ReadOp::verify() { return verifyStage(*this, getBuffer().getType(), getStage()); }

LogicalResult WriteOp::verify() { return verifyStage(*this, getBuffer().getType(), /*stage=*/nullptr); }

// Checks the buffer for partial results of a reduction to `values` values, one per column or one per row.
static LogicalResult verifyPartials(Operation *op, ReduceKind kind, BufferType buffer, int64_t values,
                                    bool isOfColumns) {
  if (kind == ReduceKind::Last)
    return op->emitOpError("has no partial results of the last column");
  RankedTensorType tile = buffer.getTile();
  const bool fits = isOfColumns ? tile.getDimSize(1) == values : tile.getDimSize(0) >= values;
  if (!tile.getElementType().isF32() || !fits)
    return op->emitOpError() << "has " << buffer << " for partial results of " << values
                             << (isOfColumns ? " columns" : " rows") << " of f32";
  return verifyStage(op, buffer, /*stage=*/nullptr);
}

LogicalResult WritePartialsOp::verify() {
  // Warps hold columns of fragments, and rows of striped tiles.
  const bool isOfColumns = layoutOf(getSource()) != Layout::Striped;
  return verifyPartials(*this, getKind(), getBuffer().getType(), getSource().getType().getDimSize(isOfColumns ? 1 : 0),
                        isOfColumns);
}

LogicalResult ReadPartialsOp::verify() {
  return verifyPartials(*this, getKind(), getBuffer().getType(), getType().getDimSize(0), isColumnVector(getType()));
}

LogicalResult SumOperandOp::verify() {
  constexpr int64_t kBlockColumns = 16; // of a left operand of mma.sync
  auto operand = cast<RankedTensorType>(getOperand().getType());
  if (getType().getDimSize(0) != operand.getDimSize(0))
    return emitOpError() << "gives " << getType().getDimSize(0) << " values for " << operand.getDimSize(0) << " rows";
  if (operand.getDimSize(1) % kBlockColumns != 0)
    return emitOpError() << "sums " << operand.getDimSize(1) << " columns; tensor cores sum multiples of "
                         << kBlockColumns;
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelined loops
//===----------------------------------------------------------------------===//

void FetchOp::getAsmBlockArgumentNames(Region &, OpAsmSetValueNameFn setName) { setName(getStage(), "stage"); }

LogicalResult FetchOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 2 || getIndex().getType() != getLower().getType() ||
      !getStage().getType().isInteger(32))
    return emitOpError("has a region of two arguments, the induction variable and the i32 stage");
  for (Operation &op : block) {
    auto copy = dyn_cast<CopyOp>(op);
    bool isScalar = llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
    if (!copy && !(isScalar && (isa<LoadScalarOp>(op) || isMemoryEffectFree(&op))))
      return op.emitOpError("cannot stand in a tile.fetch: only copies and scalar code without side effects can");
    if (!copy)
      continue;
    if (int64_t stages = copy.getBuffer().getType().getStages(); stages != static_cast<int64_t>(getStages()))
      return copy.emitOpError() << "fills a buffer of " << stages << " stages in a tile.fetch of " << getStages();
    if (copy.getStage() != getStage())
      return copy.emitOpError("fills another stage than its tile.fetch");
  }
  return success();
}

FetchOp FetchAheadOp::getFetchOp() { return getFetch().getDefiningOp<FetchOp>(); }

LogicalResult FetchAheadOp::verify() {
  FetchOp fetch = getFetchOp();
  auto loop = dyn_cast<scf::ForOp>((*this)->getParentOp());
  if (!fetch)
    return emitOpError("starts the copies of a tile.fetch");
  if (!loop || getIndex() != loop.getInductionVar())
    return emitOpError("stands in the body of its loop and has the loop's induction variable");
  if (fetch.getLower() != loop.getLowerBound() || fetch.getUpper() != loop.getUpperBound() ||
      fetch.getStep() != loop.getStep())
    return emitOpError("stands in a loop with other bounds than its tile.fetch");
  return success();
}
