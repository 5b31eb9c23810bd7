#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_ASSIGNSTAGES
#include "compiler/passes/Passes.h.inc"

namespace {

// Whether the load copies into shared memory. A left side of a 16-bit type is then loaded into registers from there.
bool passesShared(LoadOp load) {
  std::optional<Layout> layout = layoutOf(load);
  return layout == Layout::Shared || layout == Layout::OperandA;
}

// Whether two views may be the same tensor, given that arith.select may choose a view from others.
bool mayBe(Value view, Value other) {
  if (auto choice = view.getDefiningOp<arith::SelectOp>())
    return mayBe(choice.getTrueValue(), other) || mayBe(choice.getFalseValue(), other);
  return other.getDefiningOp<arith::SelectOp>() ? mayBe(other, view) : view == other;
}

bool storesTo(scf::ForOp loop, Value view) {
  return loop.getBody()
      ->walk(
          [&](StoreOp store) { return mayBe(store.getView(), view) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

// Whether the value of a scalar in a later iteration can be computed now.
bool isPredictable(Value value, scf::ForOp loop) {
  if (loop.isDefinedOutsideOfLoop(value) || value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() != 0 || isTile(value))
    return false;
  auto element = dyn_cast<LoadScalarOp>(op);
  if (element ? storesTo(loop, element.getView()) : !isMemoryEffectFree(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isPredictable(operand, loop); });
}

// Whether the rows of the load in a later iteration can be computed now.
bool isPredictable(LoadOp load, scf::ForOp loop) {
  bool predictable = true;
  load.getRows().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      predictable &= load.getRows().isAncestor(operand.getParentRegion()) || isPredictable(operand, loop);
    // Rows may load scalars, too.
    auto element = dyn_cast<LoadScalarOp>(op);
    predictable &= !element || !storesTo(loop, element.getView());
  });
  return predictable && llvm::all_of(load->getOperands(), [&](Value operand) { return isPredictable(operand, loop); });
}

struct AssignStages : impl::AssignStagesBase<AssignStages> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      auto stages = loop->getAttrOfType<IntegerAttr>(kStagesAttr);
      if (!stages || stages.getInt() == 1)
        return;
      // Loads in a branch of the body run only in some iterations, so they get no ring.
      for (LoadOp load : loop.getBody()->getOps<LoadOp>())
        if (passesShared(load) && isPredictable(load, loop) && !storesTo(loop, load.getView()))
          load->setAttr(kRingAttr, stages);
    });
  }
};

} // namespace

} // namespace nsa::tile
