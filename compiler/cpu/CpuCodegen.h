// Turns the LLVM dialect into LLVM IR and an x86-64 object, for one of the feature levels of
// runtime/base/cpu_features.h. The object does not depend on the compiling machine, so equal inputs give equal bytes on
// every machine.
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

  // Translates `module`, which is in the LLVM dialect, to LLVM IR. Each function of the LLVM IR gets the feature level
  // as its attribute target-cpu, and the vector width of the feature level.
  Result<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::LLVMContext &context) const;

  // Runs only two cheap clean-up passes of LLVM, because LowerToCpu has already chosen the vectors, the blocking, the
  // loops and the addresses. The full O3 pipeline of LLVM takes ten times as long as the two clean-up passes and gives
  // the same inner loops, and the loop unroller of the O3 pipeline doubles the size of the code.
  void optimize(llvm::Module &module) const;

  // Compiles the LLVM module to an ELF relocatable object and returns its bytes.
  Result<std::string> emitObject(llvm::Module &module) const;

private:
  CpuCodegen(std::string features, std::string vectorBits, std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine);

  std::string features;
  std::string vectorBits;
  std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine;
};

// Returns the LLVM IR of a module as text, for the stage `llvm`.
std::string printLlvm(const llvm::Module &module);

} // namespace nsa::cpu
