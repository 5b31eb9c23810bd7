#include "compiler/passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_FOLDCONFIG
#include "compiler/passes/Passes.h.inc"

namespace {

struct FoldConfig : impl::FoldConfigBase<FoldConfig> {
  void runOnOperation() override {
    // Propagation comes first. It sees through loops and nested branches, which canonicalisation would decide one at a
    // time.
    OpPassManager folding(func::FuncOp::getOperationName());
    folding.addPass(createSCCPPass());
    folding.addPass(createCanonicalizerPass());
    if (failed(runPipeline(folding, getOperation())))
      signalPassFailure();
  }
};

} // namespace

} // namespace nsa::tile
