#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_JOINPRODUCTS
#include "compiler/passes/Passes.h.inc"

namespace {

// The product of an arm that computes nothing else and yields the product. Null for other arms.
DotOp onlyProduct(Block *arm) {
  if (!arm || !llvm::hasSingleElement(arm->without_terminator()))
    return nullptr;
  auto dot = dyn_cast<DotOp>(arm->front());
  Operation *yield = arm->getTerminator();
  return dot && yield->getNumOperands() == 1 && yield->getOperand(0) == dot.getResult() ? dot : nullptr;
}

struct JoinProducts : impl::JoinProductsBase<JoinProducts> {
  void runOnOperation() override {
    getOperation().walk([](scf::IfOp branch) {
      DotOp careful = onlyProduct(branch.thenBlock()), plain = onlyProduct(branch.elseBlock());
      // Only the first arm may be the product in which zeros annihilate, because `where` is the condition itself, not
      // its opposite.
      if (!careful || !plain || !careful.getZeroAnnihilates() || plain.getZeroAnnihilates() ||
          careful.getTransposeA() != plain.getTransposeA() || careful.getTransposeB() != plain.getTransposeB() ||
          careful.getOperands() != plain.getOperands())
        return;
      careful->moveBefore(branch);
      careful.getWhereMutable().assign(branch.getCondition());
      careful->setLoc(branch.getLoc());
      branch.replaceAllUsesWith(careful->getResults());
      branch.erase();
    });
  }
};

} // namespace

} // namespace nsa::tile
