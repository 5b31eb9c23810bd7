#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_KEEPOPERANDS
#include "compiler/passes/Passes.h.inc"

namespace {

// Whether `user` may run after `op` in the same run of the block that both are in, directly or nested. The arms of a
// branch exclude each other.
bool mayFollow(Operation *user, Operation *op) {
  for (Operation *at = op; at; at = at->getParentOp()) {
    if (!at->getBlock())
      return false;
    if (Operation *place = at->getBlock()->findAncestorOpInBlock(*user))
      return at->isBeforeInBlock(place);
  }
  return false;
}

// Whether the right side of the product is read again: by the product itself, as its left side or in a later iteration,
// or by another operation.
bool isReadAgain(DotOp dot) {
  Operation *read = dot.getB().getDefiningOp<ReadOp>();
  if (!read)
    return true;
  for (auto loop = dot->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
    if (!loop->isAncestor(read))
      return true;
  return llvm::any_of(dot.getB().getUses(), [&](OpOperand &use) {
    bool isItself = &use == &dot.getBMutable();
    return !isItself && (use.getOwner() == dot || mayFollow(use.getOwner(), dot));
  });
}

struct KeepOperands : impl::KeepOperandsBase<KeepOperands> {
  void runOnOperation() override {
    getOperation().walk([](DotOp dot) {
      if (dot.getZeroAnnihilates() && isReadAgain(dot))
        dot.setKeepsB(true);
    });
  }
};

} // namespace

} // namespace nsa::tile
