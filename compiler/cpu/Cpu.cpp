#include "compiler/cpu/Cpu.h"

#include "compiler/cpu/CpuCodegen.h"
#include "compiler/cpu/CpuImage.h"
#include "compiler/cpu/Passes.h"
#include "compiler/dialect/Diagnostics.h"
#include "compiler/dialect/Tile.h"
#include "compiler/passes/Passes.h"
#include "runtime/base/cpu_features.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace nsa::cpu {

#define GEN_PASS_REGISTRATION
#include "compiler/cpu/Passes.h.inc"

void registerCpuPasses() { registerEachCpuPasses(); }

namespace {

// The module is verified after every pass if assertions are on. nsa-opt and its tests always verify. A program is
// verified when it is parsed.
#ifdef NDEBUG
constexpr bool kVerifies = false;
#else
constexpr bool kVerifies = true;
#endif

Status runPasses(mlir::ModuleOp module, mlir::PassManager &passes) {
  tile::DiagnosticText diagnostics(*module.getContext());
  passes.enableVerifier(kVerifies);
  if (mlir::succeeded(passes.run(module)))
    return Status::ok();
  return Status::error(ErrorCode::kCompileFailed, diagnostics.text());
}

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

} // namespace

Result<CpuKernel> compileForCpu(mlir::ModuleOp module, const CpuOptions &options, Timings &timings) {
  CpuKernel kernel;
  kernel.features = options.features.empty() ? std::string(hostCpuFeatures()) : options.features;
  auto lanes = cpuVectorLanes(kernel.features);
  if (!lanes)
    return lanes.status();
  auto functions = module.getOps<mlir::func::FuncOp>();
  if (functions.empty() || ++functions.begin() != functions.end())
    return Status::error(ErrorCode::kCompileFailed,
                         "a tile program is one func.func; the module has another number of them");
  kernel.entry = (*functions.begin()).getName().str();

  mlir::PassManager lower(module.getContext());
  tile::buildCpuPipeline(lower);
  lower.nest<mlir::func::FuncOp>().addPass(createLowerToCpu({*lanes}));
  lower.addPass(mlir::createCSEPass());
  NSA_RETURN_IF_ERROR(runPasses(module, lower));
  mlir::func::FuncOp function = *module.getOps<mlir::func::FuncOp>().begin();
  kernel.scratchBytes = function->getAttrOfType<mlir::IntegerAttr>(tile::kScratchBytesAttr).getInt();
  if (options.stage == CpuStage::kScheduled) {
    timings.lap("passes");
    kernel.text = print(module);
    return kernel;
  }
  function->removeAttr(tile::kScratchBytesAttr);
  mlir::PassManager convert(module.getContext());
  convert.addPass(createConvertToLlvm());
  NSA_RETURN_IF_ERROR(runPasses(module, convert));
  timings.lap("passes");

  auto codegen = CpuCodegen::make(kernel.features);
  if (!codegen)
    return codegen.status();
  llvm::LLVMContext context;
  auto translated = codegen->translate(module, context);
  if (!translated)
    return translated.status();
  timings.lap("translate");
  codegen->optimize(**translated);
  timings.lap("optimize");
  if (options.stage == CpuStage::kLlvm) {
    kernel.text = printLlvm(**translated);
    return kernel;
  }
  auto object = codegen->emitObject(**translated);
  if (!object)
    return object.status();
  auto image = makeCpuImage(*object, kernel.entry);
  if (!image)
    return image.status();
  kernel.image = std::move(image->bytes);
  kernel.entryOffset = image->entryOffset;
  timings.lap("codegen");
  return kernel;
}

} // namespace nsa::cpu
