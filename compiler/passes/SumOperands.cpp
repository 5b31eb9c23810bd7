#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_SUMOPERANDS
#include "compiler/passes/Passes.h.inc"

namespace {

bool isLeftSide(OpOperand &use) {
  auto dot = dyn_cast<DotOp>(use.getOwner());
  return dot && &use == &dot.getAMutable() && !dot.getTransposeA();
}

// The 16-bit tile that `reduce` sums along its rows, if a product has the tile in registers as its left side. Null
// otherwise. A loaded tile may stay in shared memory.
Value summedOperand(ReduceOp reduce) {
  auto widened = reduce.getSource().getDefiningOp<CastOp>();
  if (reduce.getKind() != ReduceKind::Add || isColumnVector(reduce.getType()) || !widened)
    return nullptr;
  Value tile = widened.getSource();
  auto type = cast<RankedTensorType>(tile.getType());
  const bool isRounded = type.getElementTypeBitWidth() == 16 && type.getDimSize(1) % 16 == 0;
  return isRounded && !tile.getDefiningOp<LoadOp>() && llvm::any_of(tile.getUses(), isLeftSide) ? tile : nullptr;
}

struct SumOperands : impl::SumOperandsBase<SumOperands> {
  void runOnOperation() override {
    getOperation().walk([](ReduceOp reduce) {
      Value tile = summedOperand(reduce);
      if (!tile)
        return;
      OpBuilder builder(reduce);
      reduce.replaceAllUsesWith(SumOperandOp::create(builder, reduce.getLoc(), reduce.getType(), tile).getResult());
      reduce.erase();
    });
  }
};

} // namespace

} // namespace nsa::tile
