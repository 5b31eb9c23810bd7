// The emitter as a filter for lit: `emit-cuda [--scheduled] FILE|-` prints the CUDA text of a tile program. Without
// --scheduled the passes of the GPU pipeline run first; with it the program carries their decisions already.
#include "compiler/cuda/Emitter.h"
#include "compiler/dialect/TileProgram.h"
#include "compiler/passes/Passes.h"
#include "tests/unit/dialect/tile_text.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

// The most that a block of any target may use: what fits is the pass's concern, not the emitter's.
static constexpr int64_t kSharedLimit = 227 * 1024;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::opt<std::string> file(llvm::cl::Positional, llvm::cl::desc("FILE"), llvm::cl::init("-"));
  llvm::cl::opt<bool> scheduled("scheduled", llvm::cl::desc("the program carries the decisions of the passes"));
  llvm::cl::ParseCommandLineOptions(argc, argv);

  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) {
    llvm::errs() << file << ": " << buffer.getError().message() << "\n";
    return 2;
  }
  mlir::DialectRegistry registry;
  nsa::tile::registerTileProgramDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      nsa::test::parseTileText((*buffer)->getBuffer(), (*buffer)->getBufferIdentifier(), context, diagnostics);
  if (!module) {
    llvm::errs() << diagnostics;
    return 1;
  }
  if (!scheduled) {
    mlir::PassManager manager(&context);
    nsa::tile::buildGpuPipeline(manager, kSharedLimit);
    if (failed(manager.run(*module)))
      return 1;
  }
  nsa::cuda::KernelTitle title{"test", "none", "sm_80", "dtype=bf16", "warps=4"};
  mlir::FailureOr<std::string> text = nsa::cuda::emitCuda(*module, title);
  if (failed(text))
    return 1;
  llvm::outs() << *text;
  return 0;
}
