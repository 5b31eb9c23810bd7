#include "compiler/cpu/CpuCodegen.h"

#include "runtime/base/cpu_features.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Scalar.h"

#include <mutex>

namespace nsa::cpu {
namespace {

constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

void registerTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

// Tells passes what the target has. An image runs without libc and libm, so no pass may introduce a call of their
// functions.
void addTargetKnowledge(llvm::legacy::PassManager &passes, const llvm::TargetMachine &machine) {
  llvm::TargetLibraryInfoImpl library{llvm::Triple(kTriple)};
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
}

} // namespace

CpuCodegen::CpuCodegen(std::string features, std::string vectorBits,
                       std::unique_ptr<llvm::CodeGenTargetMachineImpl> machine)
    : features(std::move(features)), vectorBits(std::move(vectorBits)), machine(std::move(machine)) {}
CpuCodegen::CpuCodegen(CpuCodegen &&) = default;
CpuCodegen &CpuCodegen::operator=(CpuCodegen &&) = default;
CpuCodegen::~CpuCodegen() = default;

Result<CpuCodegen> CpuCodegen::make(std::string_view features) {
  auto lanes = cpuVectorLanes(features);
  if (!lanes)
    return lanes.status();
  registerTarget();
  const llvm::Triple triple(kTriple);
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return Status::error(ErrorCode::kInternal, "LLVM has no x86-64 target: " + message);
  llvm::TargetOptions options;
  options.MCOptions.MCSaveTempLabels = false;
  llvm::TargetMachine *machine =
      target->createTargetMachine(triple, llvm::StringRef(features), "", options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive);
  if (!machine)
    return Status::error(ErrorCode::kInternal, "LLVM cannot generate code for '" + std::string(features) + "'");
  // Every target machine of LLVM that emits code has this type.
  return CpuCodegen(
      std::string(features), std::to_string(*lanes * 32),
      std::unique_ptr<llvm::CodeGenTargetMachineImpl>(static_cast<llvm::CodeGenTargetMachineImpl *>(machine)));
}

Result<std::unique_ptr<llvm::Module>> CpuCodegen::translate(mlir::ModuleOp module, llvm::LLVMContext &context) const {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  std::unique_ptr<llvm::Module> result = mlir::translateModuleToLLVMIR(module, context, "kernel");
  if (!result)
    return Status::error(ErrorCode::kInternal, "translation to LLVM IR failed");
  result->setTargetTriple(machine->getTargetTriple());
  result->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", features);
    // Without these attributes x86-64-v4 splits 512-bit vectors in two.
    function.addFnAttr("prefer-vector-width", vectorBits);
    function.addFnAttr("min-legal-vector-width", vectorBits);
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.setAlignment(llvm::Align(64));
  }
  return result;
}

void CpuCodegen::optimize(llvm::Module &module) const {
  llvm::legacy::PassManager passes;
  addTargetKnowledge(passes, *machine);
  passes.add(llvm::createCFGSimplificationPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.run(module);
}

Result<std::string> CpuCodegen::emitObject(llvm::Module &module) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  addTargetKnowledge(passes, *machine);
  auto *moduleInfo = new llvm::MachineModuleInfoWrapperPass(machine.get());
  llvm::TargetPassConfig *config = machine->createPassConfig(passes);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(moduleInfo);
  // This replaces addISelPasses. That function improves loops and addresses, which LowerToCpu has already written well
  // (loop strength reduction alone took an eighth of a compile), and lowers operations that LowerToCpu never emits.
  config->addISelPrepare();
  if (config->addInstSelector())
    return Status::error(ErrorCode::kInternal, "LLVM cannot select instructions");
  passes.add(llvm::Pass::createPass(&llvm::FinalizeISelID));
  config->addMachinePasses();
  config->setInitialized();
  if (machine->addAsmPrinter(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                             moduleInfo->getMMI().getContext()))
    return Status::error(ErrorCode::kInternal, "LLVM cannot emit an object file");
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

std::string printLlvm(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

} // namespace nsa::cpu
