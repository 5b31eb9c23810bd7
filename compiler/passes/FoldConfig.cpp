#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

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
    func::FuncOp function = getOperation();
    if (failed(runPipeline(folding, function)))
      return signalPassFailure();
    llvm::BitVector unused(function.getNumArguments());
    for (BlockArgument argument : function.getArguments())
      if (function.removeArgAttr(argument.getArgNumber(), kIfUsedAttr) && argument.use_empty())
        unused.set(argument.getArgNumber());
    if (failed(function.eraseArguments(unused)))
      signalPassFailure();
  }
};

} // namespace

} // namespace nsa::tile
