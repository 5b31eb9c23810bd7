#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"

static void addCommonPasses(OpPassManager &manager, LayoutTarget target) {
  // On a GPU a block decides at run time whether zeros must annihilate, so one product serves. On a CPU the two kinds
  // of product stay.
  if (target == LayoutTarget::kGpu) {
    manager.addPass(createJoinProducts());
    manager.addPass(createSumOperands());
  }
  manager.addPass(createFuseElementwise());
  manager.addPass(createAssignLayouts({target}));
}

void buildGpuPipeline(OpPassManager &manager, int64_t sharedLimit) {
  // NVRTC does not see that two comparisons or two loads are one, and each load gets memory of its own.
  manager.addPass(createCSEPass());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  addCommonPasses(functions, LayoutTarget::kGpu);
  functions.addPass(createInsertCopies());
  functions.addPass(createExpandStages());
  functions.addPass(createKeepOperands());
  functions.addPass(createInsertBarriers());
  functions.addPass(createPlanBuffers({sharedLimit}));
}

void buildCpuPipeline(OpPassManager &manager) { addCommonPasses(manager.nest<func::FuncOp>(), LayoutTarget::kCpu); }

namespace {
struct GpuOptions : PassPipelineOptions<GpuOptions> {
  Option<int64_t> sharedLimit{*this, "shared-limit", llvm::cl::desc("bytes of shared memory that a block may use"),
                              llvm::cl::init(49152)};
};
} // namespace

void registerTilePasses() {
  registerEachTilePasses();
  PassPipelineRegistration<GpuOptions>(
      "tile-gpu", "from a tile program to what the CUDA emitter prints",
      [](OpPassManager &manager, const GpuOptions &options) { buildGpuPipeline(manager, options.sharedLimit); });
  PassPipelineRegistration<>("tile-cpu", "from a tile program to what LowerToCpu lowers", buildCpuPipeline);
}

} // namespace nsa::tile
