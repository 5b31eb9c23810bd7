// LLVM dialect -> LLVM IR -> x86-64 object, for one of the feature levels of runtime/base/cpu_features.h.
// Nothing of the machine that compiles takes part, so equal inputs give equal bytes everywhere.
// Thread-safety: distinct contexts may be used from distinct threads.
#pragma once

#include "runtime/base/status.h"

#include <memory>
#include <string>
#include <string_view>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm
namespace mlir {
class ModuleOp;
} // namespace mlir

namespace nsa::cpu {

// `module` is in the LLVM dialect. Functions get the attributes of the feature level.
Result<std::unique_ptr<llvm::Module>> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                      std::string_view features);

// The few passes that this code needs. LowerToCpu chooses vectors, blocking and unrolling itself; all of O3 takes ten
// times as long for the same inner loops, and its unroller doubles the code.
Status optimize(llvm::Module &module);

// The bytes of an ELF relocatable object.
Result<std::string> emitObject(llvm::Module &module);

std::string printLlvm(const llvm::Module &module);

} // namespace nsa::cpu
