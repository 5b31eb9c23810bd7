#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_ASSIGNSTAGES
#include "compiler/passes/Passes.h.inc"

namespace {

// Whether the rows of a later iteration can be told now.
bool isPredictable(LoadOp load, scf::ForOp loop) {
  bool predictable = true;
  load.getRows().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      bool ofRegion = load.getRows().isAncestor(operand.getParentRegion());
      bool ofLoop = loop.getRegion().isAncestor(operand.getParentRegion());
      predictable &= ofRegion || !ofLoop || operand == loop.getInductionVar();
    }
  });
  return predictable && llvm::all_of(load->getOperands(), [&](Value operand) {
           return loop.isDefinedOutsideOfLoop(operand) || operand == loop.getInductionVar();
         });
}

// Left sides of 16 bit types go on to registers from there.
bool passesShared(LoadOp load) {
  std::optional<Layout> layout = layoutOf(load);
  return layout == Layout::Shared || layout == Layout::OperandA;
}

// Whether two views may be one: a view may be chosen from others.
bool mayBe(Value view, Value other) {
  if (auto choice = view.getDefiningOp<arith::SelectOp>())
    return mayBe(choice.getTrueValue(), other) || mayBe(choice.getFalseValue(), other);
  return other.getDefiningOp<arith::SelectOp>() ? mayBe(other, view) : view == other;
}

bool storesTo(scf::ForOp loop, Value view) {
  return loop.getBody()
      ->walk([&](StoreOp store) {
        return mayBe(store.getView(), view) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct AssignStages : impl::AssignStagesBase<AssignStages> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      auto stages = loop->getAttrOfType<IntegerAttr>(kStagesAttr);
      if (!stages || stages.getInt() == 1)
        return;
      // Loads in a branch of the body run in some iterations only: they are not in a ring.
      for (LoadOp load : loop.getBody()->getOps<LoadOp>())
        if (passesShared(load) && isPredictable(load, loop) && !storesTo(loop, load.getView()))
          load->setAttr(kRingAttr, stages);
    });
  }
};

} // namespace

} // namespace nsa::tile
