// Turns the LLVM dialect into LLVM IR and an x86-64 object, for one of the feature levels of
// runtime/base/cpu_features.h. Nothing of the compiling machine takes part, so equal inputs give equal bytes
// everywhere.
// Thread-safety: one object per thread.
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
  // An unknown feature level is an error.
  static Result<CpuCodegen> make(std::string_view features);
  CpuCodegen(CpuCodegen &&);
  CpuCodegen &operator=(CpuCodegen &&);
  ~CpuCodegen();

  // `module` is in the LLVM dialect. The functions of the result have the attributes of the feature level.
  Result<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::LLVMContext &context) const;

  // Runs two cheap clean-up passes. LowerToCpu chooses vectors, blocking, loops and addresses itself. All of O3 takes
  // ten times as long for the same inner loops, and its unroller doubles the code.
  void optimize(llvm::Module &module) const;

  // The bytes of an ELF relocatable object.
  Result<std::string> emitObject(llvm::Module &module) const;

private:
  CpuCodegen(std::string features, std::string vectorBits, std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine);

  std::string features;
  std::string vectorBits;
  std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine;
};

// The text of a module, for stage llvm.
std::string printLlvm(const llvm::Module &module);

} // namespace nsa::cpu
