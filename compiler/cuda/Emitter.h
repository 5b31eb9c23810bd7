// A scheduled tile program -> CUDA C++: one line per tile operation, a call into templates/device, with the names of
// the template. Layouts, stages and shared memory were decided by passes before; the emitter only says them. What it
// cannot say is an error on the operation, never other code.
// Pure function; the module belongs to the caller.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace nsa::cuda {

// What the comment at the top says. It does not change the code below it.
struct KernelTitle {
  std::string templateName;
  std::string op;
  std::string target;
  std::string fixed;  // "dtype=bf16 group=8 ..."
  std::string config; // "key_tile=64 ..."
};

// The module holds one function. The text includes device headers by name (compiler/driver/DeviceSource.h writes them
// into it). On failure the reasons went to the context's diagnostics.
mlir::FailureOr<std::string> emitCuda(mlir::ModuleOp program, const KernelTitle &title);

} // namespace nsa::cuda
