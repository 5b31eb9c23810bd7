#include "compiler/cpu/LoadPlacement.h"

#include "compiler/dialect/Tile.h"

namespace nsa::cpu {

using namespace mlir;

namespace {

// Two tensors may share memory. So a load is not moved over an operation that writes to any tensor.
bool writesTensors(Operation &op) {
  return op
      .walk([](Operation *nested) {
        return isa<tile::StoreOp, tile::ReportOp>(nested) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool holdsUseOf(Operation &op, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return op.isAncestor(user); });
}

} // namespace

void sinkLoads(func::FuncOp function) {
  SmallVector<tile::LoadOp> loads;
  function.walk([&](tile::LoadOp load) { loads.push_back(load); });
  for (tile::LoadOp load : loads) {
    Operation *place = load->getNextNode();
    while (!place->hasTrait<OpTrait::IsTerminator>() && !writesTensors(*place) && !holdsUseOf(*place, load.getResult()))
      place = place->getNextNode();
    load->moveBefore(place);
  }
}

} // namespace nsa::cpu
