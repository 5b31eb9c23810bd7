// Turns the LLVM dialect into LLVM IR and an x86-64 object, for one of the feature levels of
// runtime/base/cpu_features.h. No property of the compiling machine changes the object, so equal inputs give equal
// bytes everywhere.
// Thread-safety: one CpuCodegen per thread.
#pragma once

#include "runtime/base/status.h"

#include <memory>
#include <string>
#include <string_view>

namespace llvm {
class CodeGenTargetMachineImpl;
class LLVMContext;
class Module;
} // namespace llvm
namespace mlir {
class ModuleOp;
} // namespace mlir

namespace nsa::cpu {

class CpuCodegen {
public:
  // `make` fails for an unknown feature level.
  static Result<CpuCodegen> make(std::string_view features);
  CpuCodegen(CpuCodegen &&);
  CpuCodegen &operator=(CpuCodegen &&);
  ~CpuCodegen();

  // `module` is in the LLVM dialect. The functions of the LLVM IR get the attributes of the feature level.
  Result<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::LLVMContext &context) const;

  // Runs two cheap clean-up passes of LLVM, because LowerToCpu chooses vectors, blocking, loops and addresses itself.
  // All passes of LLVM's O3 take ten times as long as these two passes and give the same inner loops, and the unroller
  // of O3 doubles the code.
  void optimize(llvm::Module &module) const;

  // Returns the bytes of an ELF relocatable object.
  Result<std::string> emitObject(llvm::Module &module) const;

private:
  CpuCodegen(std::string features, std::string vectorBits, std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine);

  std::string features;
  std::string vectorBits;
  std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine;
};

// Returns the text of a module, for the stage `llvm`.
std::string printLlvm(const llvm::Module &module);

} // namespace nsa::cpu
