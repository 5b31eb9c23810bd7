// Prints a scheduled tile program as CUDA C++. Each tile operation is one line: a call into templates/device, with the
// variable names of the template. Passes decide layouts, stages and shared memory before the emitter runs. If the
// emitter cannot print an operation, it fails with an error at that operation.
// Thread-safety: emitting is a pure function; the caller owns the module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace nsa::cuda {

// The text of the comment at the top of the emitted source. The comment does not change the code.
struct KernelTitle {
  std::string templateName;
  std::string op;
  std::string target;
  std::string fixed;  // "dtype=bf16 group=8 ..."
  std::string config; // "key_tile=64 ..."
};

// The module holds one function. Emitted CUDA C++ includes device headers by name; compiler/driver/DeviceSource.h
// writes their text into it. The errors of a failed emission are in the diagnostics of the context.
mlir::FailureOr<std::string> emitCuda(mlir::ModuleOp program, const KernelTitle &title);

} // namespace nsa::cuda
