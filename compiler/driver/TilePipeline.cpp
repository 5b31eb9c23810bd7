#include "compiler/driver/TilePipeline.h"

#include "compiler/cpu/Cpu.h"
#include "compiler/cuda/Emitter.h"
#include "compiler/dialect/Diagnostics.h"
#include "compiler/dialect/Tile.h"
#include "compiler/dialect/TileProgram.h"
#include "compiler/language/lowering/Lower.h"
#include "compiler/passes/Passes.h"
#include "compiler/render/TileHeader.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace nsa {

namespace {

// Remembers which pass refused the program, because the pass decides the code of the error. The adaptors around a pass
// fail after the pass, so only the first failure counts.
class FailedPass : public PassInstrumentation {
public:
  explicit FailedPass(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getArgument().str();
  }

private:
  std::string &name;
};

// Turns MLIR's "file:line:column: error: text", with the lines that follow it, into an error at that place.
Status diagnosed(llvm::StringRef diagnostics, ErrorCode code) {
  auto [first, rest] = diagnostics.trim().split('\n');
  auto [place, text] = first.split(": error: ");
  ErrorInfo info;
  info.code = code;
  info.field = "template";
  info.value = place.str();
  info.rule = text.str();
  for (llvm::StringRef more : llvm::split(rest, '\n'))
    if (!more.empty())
      info.rule += "; " + more.str();
  return Status(std::move(info));
}

// The first line of each warning, which says its place.
std::string warningsOf(const language::Diagnostics &diagnostics) {
  std::string lines;
  for (const language::Diagnostic &message : diagnostics.list())
    if (message.severity == language::Severity::kWarning) {
      const std::string text = message.toString();
      lines += text.substr(0, text.find('\n') + 1);
    }
  return lines;
}

// The manifest's words for element types.
std::string dtypeText(Type type) {
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "fp16";
  if (type.isF32())
    return "fp32";
  assert(type.isInteger(32) && "the verifier admits no other element");
  return "int32";
}

// The parameters of the kernel are the arguments of the tile program.
std::vector<ManifestParam> paramsOf(func::FuncOp function) {
  std::vector<ManifestParam> params;
  for (BlockArgument argument : function.getArguments()) {
    ManifestParam param;
    param.name = tile::sourceName(argument);
    if (auto view = dyn_cast<tile::ViewType>(argument.getType())) {
      param.kind = ManifestParam::Kind::kView;
      auto gradient = dyn_cast<tile::GradientType>(view.getElementType());
      param.isGradient = bool(gradient);
      param.dtype = dtypeText(gradient ? gradient.getElementType() : view.getElementType());
      param.rank = static_cast<int>(view.getRank());
      param.pageRows = static_cast<int>(view.getPageRows());
    } else {
      param.kind = argument.getType().isF32() ? ManifestParam::Kind::kF32 : ManifestParam::Kind::kI32;
    }
    params.push_back(std::move(param));
  }
  return params;
}

std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().printNameLocAsPrefix());
  return text;
}

class TileCompilation {
public:
  TileCompilation(const TileCompile &compile, Timings &timings)
      : compile(compile), timings(timings), context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    tile::registerTileProgramDialects(registry);
    context.appendDialectRegistry(registry);
  }

  Result<TileResult> run() {
    TileResult result;
    language::Diagnostics diagnostics;
    OwningOpRef<ModuleOp> module =
        language::lowerTileProgram(compile.kernel, compile.libraries, compile.values, context, diagnostics);
    if (!module)
      return compile.kernel.kernel->operators.empty()
                 ? programError(diagnostics, compile.kernel.source->name(), compile.title.fixed)
                 : templateError(diagnostics);
    timings.lap("render");
    if (compile.kernel.kernel->operators.empty())
      result.warnings = warningsOf(diagnostics);
    NSA_RETURN_IF_ERROR(verified(*module));
    result.params = paramsOf(cast<func::FuncOp>(module->getBody()->front()));
    if (compile.stage == NSA_COMPILER_STAGE_TILE) {
      result.text = printModule(*module);
      return result;
    }
    NSA_RETURN_IF_ERROR(compile.target.isGpu ? compileForGpu(*module, result) : compileForCpu(*module, result));
    return result;
  }

private:
  // The verifiers of the operations know rules of which the language knows nothing, such as sizes of tiles.
  Status verified(ModuleOp module) {
    tile::DiagnosticText diagnostics(context);
    return succeeded(verify(module)) ? Status::ok() : diagnosed(diagnostics.text(), ErrorCode::kCompileFailed);
  }

  template <typename Build> Status runPasses(ModuleOp module, Build build) {
    tile::DiagnosticText diagnostics(context);
    PassManager manager(&context);
    std::string failedPass;
    manager.addInstrumentation(std::make_unique<FailedPass>(failedPass));
    build(manager);
    if (succeeded(manager.run(module)))
      return Status::ok();
    bool tooBig = failedPass == "tile-plan-buffers";
    return diagnosed(diagnostics.text(), tooBig ? ErrorCode::kUnsupported : ErrorCode::kCompileFailed);
  }

  Status compileForGpu(ModuleOp module, TileResult &result) {
    NSA_RETURN_IF_ERROR(runPasses(
        module, [&](OpPassManager &manager) { tile::buildGpuPipeline(manager, compile.target.sharedBytesPerBlock); }));
    timings.lap("passes");
    if (compile.stage == NSA_COMPILER_STAGE_SCHEDULED) {
      result.text = printModule(module);
      return Status::ok();
    }
    auto function = cast<func::FuncOp>(module.getBody()->front());
    result.sharedBytes = function->getAttrOfType<IntegerAttr>(tile::kSharedBytesAttr).getInt();
    tile::DiagnosticText diagnostics(context);
    const Manifest &title = compile.title;
    FailureOr<std::string> source = cuda::emitCuda(
        module, {title.templateName, title.op, title.target, formatValues(title.fixed), formatValues(title.config)});
    if (failed(source))
      return diagnosed(diagnostics.text(), ErrorCode::kCompileFailed);
    result.text = std::move(*source);
    return Status::ok();
  }

  Status compileForCpu(ModuleOp module, TileResult &result) {
    cpu::CpuOptions options;
    options.features = compile.cpuFeatures;
    options.stage = compile.stage == NSA_COMPILER_STAGE_SCHEDULED ? cpu::CpuStage::kScheduled
                    : compile.stage == NSA_COMPILER_STAGE_LLVM    ? cpu::CpuStage::kLlvm
                                                                  : cpu::CpuStage::kImage;
    Result<cpu::CpuKernel> kernel = cpu::compileForCpu(module, options, timings);
    if (!kernel) {
      ErrorInfo info = kernel.status().error();
      info.message = compile.kernel.source->name() + ": " +
                     (info.message.empty() ? info.field + " " + info.value + ": " + info.rule : info.message);
      return Status(std::move(info));
    }
    result.text = std::move(kernel->text);
    result.image = std::move(kernel->image);
    result.entryOffset = kernel->entryOffset;
    result.scratchBytes = kernel->scratchBytes;
    return Status::ok();
  }

  const TileCompile &compile;
  Timings &timings;
  MLIRContext context;
};

} // namespace

Result<TileResult> compileTileProgram(const TileCompile &compile, Timings &timings) {
  return TileCompilation(compile, timings).run();
}

std::string llvmVersion() { return LLVM_VERSION_STRING; }

} // namespace nsa
