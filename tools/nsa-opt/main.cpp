// mlir-opt for tile programs: every pass of ours by name, no dialect that we do not use. With `--tile-language FILE` it
// lowers a program in the tile language.
#include "compiler/cpu/Cpu.h"
#include "compiler/cpu/Passes.h"
#include "compiler/cuda/Emitter.h"
#include "compiler/dialect/TileProgram.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/language/lowering/Lower.h"
#include "compiler/language/types/Explain.h"
#include "compiler/passes/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

namespace {

using namespace nsa;

constexpr const char *kUsage =
    "nsa-opt --tile-language FILE [--values NAME=VALUE,..] [--emit explain|tile|scheduled|cuda|llvm|image]"
    " [--shared-limit BYTES] [--cpu-features LEVEL] [--time]\n";

double millisecondsOf(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// `--tile-language FILE`: a program in the tile language, down to the dialect, CUDA or an image for the CPU. Takes the
// arguments behind `--tile-language` and returns the exit code.
int runTileLanguage(int argc, char **argv) {
  std::string path, emit = "tile", cpuFeatures;
  language::GivenValues given;
  int64_t sharedLimit = 227 * 1024;
  bool isTimed = false;
  for (int i = 0; i < argc; ++i) {
    const llvm::StringRef argument = argv[i];
    if (argument == "--time") {
      isTimed = true;
    } else if (argument.starts_with("--") && i + 1 == argc) {
      llvm::errs() << kUsage;
      return 2;
    } else if (argument == "--values") {
      for (llvm::StringRef pair : llvm::split(llvm::StringRef(argv[++i]), ',')) {
        const auto [name, value] = pair.split('=');
        given.insert_or_assign(name.str(), value.str());
      }
    } else if (argument == "--emit") {
      emit = argv[++i];
    } else if (argument == "--cpu-features") {
      cpuFeatures = argv[++i];
    } else if (argument == "--shared-limit") {
      llvm::StringRef(argv[++i]).getAsInteger(10, sharedLimit);
    } else {
      path = argument.str();
    }
  }
  TileFiles files;
  language::Diagnostics &diagnostics = files.diagnostics();
  const auto begin = std::chrono::steady_clock::now();
  const Result<const language::SyntaxTree *> read = files.read(path);
  if (!read) {
    llvm::errs() << read.status().toString() << "\n" << kUsage;
    return 2;
  }
  const language::SyntaxTree *kernel = *read;
  const language::LibraryResolver resolve = files.libraries(path);
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const auto parsed = std::chrono::steady_clock::now();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (!diagnostics.hasErrors()) {
    if (isTimed) {
      const auto typed = std::chrono::steady_clock::now();
      language::Diagnostics scratch;
      language::typeProgram(*kernel, resolve, given, scratch);
      llvm::errs() << "types " << millisecondsOf(std::chrono::steady_clock::now() - typed) << " ms\n";
    }
    if (emit == "explain") {
      const std::unique_ptr<language::Program> program = language::typeProgram(*kernel, resolve, given, diagnostics);
      llvm::errs() << diagnostics.toString();
      if (program)
        llvm::outs() << language::explain(*program);
      return program ? 0 : 1;
    }
    const auto lowered = std::chrono::steady_clock::now();
    module = language::lowerTileProgram(*kernel, resolve, given, context, diagnostics);
    if (isTimed)
      llvm::errs() << "parse and context " << millisecondsOf(parsed - begin) << " ms, types and lowering "
                   << millisecondsOf(std::chrono::steady_clock::now() - lowered) << " ms\n";
  }
  llvm::errs() << diagnostics.toString();
  if (!module)
    return 1;
  if (failed(mlir::verify(*module))) {
    module->print(llvm::errs(), mlir::OpPrintingFlags().printNameLocAsPrefix().assumeVerified());
    return 1;
  }
  if (emit == "scheduled" || emit == "cuda") {
    mlir::PassManager manager(&context);
    tile::buildGpuPipeline(manager, sharedLimit);
    if (failed(manager.run(*module)))
      return 1;
  }
  if (emit == "tile" || emit == "scheduled") {
    module->print(llvm::outs(), mlir::OpPrintingFlags().printNameLocAsPrefix());
    return 0;
  }
  if (emit == "cuda") {
    mlir::FailureOr<std::string> text = cuda::emitCuda(*module, {path, given["op"], "", "", ""});
    if (failed(text))
      return 1;
    llvm::outs() << *text;
    return 0;
  }
  cpu::CpuOptions options;
  options.features = cpuFeatures;
  options.stage = emit == "llvm" ? cpu::CpuStage::kLlvm : cpu::CpuStage::kImage;
  Timings timings;
  Result<cpu::CpuKernel> kernelImage = cpu::compileForCpu(*module, options, timings);
  if (!kernelImage) {
    llvm::errs() << kernelImage.status().toString() << "\n";
    return 1;
  }
  if (emit == "llvm")
    llvm::outs() << kernelImage->text;
  else
    llvm::outs().write(reinterpret_cast<const char *>(kernelImage->image.data()), kernelImage->image.size());
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1 && llvm::StringRef(argv[1]) == "--tile-language")
    return runTileLanguage(argc - 2, argv + 2);
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  registry.insert<mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect, mlir::vector::VectorDialect>();
  mlir::registerTransformsPasses();
  tile::registerTilePasses();
  cpu::registerCpuPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "developer's tool for tile programs\n", registry));
}
