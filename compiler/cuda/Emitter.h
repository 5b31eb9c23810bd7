// Prints a scheduled tile program as CUDA C++. Each tile operation is one line: a call into templates/device, with the
// variable names of the template. Passes decide layouts, stages and shared memory before the emitter runs. If the
// emitter cannot print an operation, it fails with an error at that operation.
// Thread-safety: emitting is a pure function; the caller owns the module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace nsa::cuda {

// The text of the comment at the top of the emitted source. The emitted code does not depend on the KernelTitle.
struct KernelTitle {
  std::string templateName;
  std::string op;
  std::string target;
  std::string fixed;  // "dtype=bf16 group=8 ..."
  std::string config; // "key_tile=64 ..."
};

// `program` holds one function. The emitted source has `#include` lines for the device headers, which
// compiler/driver/DeviceSource.h replaces with the text of the headers. If emitting fails, the errors are in the
// diagnostics of the MLIRContext.
mlir::FailureOr<std::string> emitCuda(mlir::ModuleOp program, const KernelTitle &title);

} // namespace nsa::cuda
