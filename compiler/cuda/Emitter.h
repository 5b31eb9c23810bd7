// Prints a scheduled tile program as CUDA C++. Each tile operation is one line: a call into templates/device, with the
// names of the template. Passes have decided layouts, stages and shared memory before. If the emitter has no text for
// an operation, the result is an error at that operation, never different code.
// Thread-safety: pure function; the caller owns the module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace nsa::cuda {

// The text of the comment at the top. It does not change the code below.
struct KernelTitle {
  std::string templateName;
  std::string op;
  std::string target;
  std::string fixed;  // "dtype=bf16 group=8 ..."
  std::string config; // "key_tile=64 ..."
};

// The module holds one function. The result includes device headers by name; compiler/driver/DeviceSource.h writes
// their text into it. On failure the errors are in the diagnostics of the context.
mlir::FailureOr<std::string> emitCuda(mlir::ModuleOp program, const KernelTitle &title);

} // namespace nsa::cuda
