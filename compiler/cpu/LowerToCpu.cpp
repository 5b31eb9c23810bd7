#include "compiler/cpu/FunctionLowering.h"
#include "compiler/cpu/LoadPlacement.h"
#include "compiler/cpu/Passes.h"

namespace nsa::cpu {

using namespace mlir;

#define GEN_PASS_DEF_LOWERTOCPU
#include "compiler/cpu/Passes.h.inc"

namespace {

struct LowerToCpu : impl::LowerToCpuBase<LowerToCpu> {
  using LowerToCpuBase::LowerToCpuBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (lanes != 16 && lanes != 8) {
      function.emitOpError() << "cannot be lowered for vectors of " << int64_t(lanes) << " lanes; there are 16 or 8";
      return signalPassFailure();
    }
    if (failed(checkInput(function)))
      return signalPassFailure();
    sinkLoads(function);
    if (failed(FunctionLowering(function, lanes).run()))
      return signalPassFailure();
  }

private:
  static LogicalResult checkInput(func::FuncOp function) {
    if (!function.getBody().hasOneBlock() || function.getNumResults() != 0)
      return function.emitOpError("is not a tile program: one block without results");
    WalkResult walk = function.walk([](Operation *op) {
      for (Value result : op->getResults()) {
        if (!tile::isTile(result) || tile::layoutOf(result))
          continue;
        op->emitOpError("makes a tile without a layout; run tile-cpu first");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};

} // namespace

} // namespace nsa::cpu
