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
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace nsa::cpu {
namespace {

constexpr const char *kTriple = "x86_64-unknown-linux-gnu";
constexpr const char *kFeaturesFlag = "nsa.cpu_features";

void registerTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(llvm::StringRef features) {
  registerTarget();
  const llvm::Triple triple(kTriple);
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return Status::error(ErrorCode::kInternal, "LLVM has no x86-64 target: " + message);
  llvm::TargetOptions options;
  options.MCOptions.MCSaveTempLabels = false;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, features, "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return Status::error(ErrorCode::kInternal, "LLVM cannot generate code for '" + features.str() + "'");
  return machine;
}

// No function of libc or libm exists where an image runs, so no pass may introduce one.
llvm::TargetLibraryInfoImpl noLibrary() {
  llvm::TargetLibraryInfoImpl library{llvm::Triple(kTriple)};
  library.disableAllFunctions();
  return library;
}

Result<std::unique_ptr<llvm::TargetMachine>> targetMachineOf(const llvm::Module &module) {
  const auto *flag = llvm::dyn_cast_or_null<llvm::MDString>(module.getModuleFlag(kFeaturesFlag));
  assert(flag && "the module comes from translateToLlvm");
  return makeTargetMachine(flag->getString());
}

} // namespace

Result<std::unique_ptr<llvm::Module>> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                      std::string_view features) {
  auto lanes = cpuVectorLanes(features);
  if (!lanes)
    return lanes.status();
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  std::unique_ptr<llvm::Module> result = mlir::translateModuleToLLVMIR(module, context, "kernel");
  if (!result)
    return Status::error(ErrorCode::kInternal, "translation to LLVM IR failed");
  auto machine = makeTargetMachine(features);
  if (!machine)
    return machine.status();
  result->setTargetTriple((*machine)->getTargetTriple());
  result->setDataLayout((*machine)->createDataLayout());
  result->addModuleFlag(llvm::Module::Error, kFeaturesFlag, llvm::MDString::get(context, features));
  const std::string vectorBits = std::to_string(*lanes * 32);
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", features);
    // Left alone, x86-64-v4 splits 512 bit vectors in two.
    function.addFnAttr("prefer-vector-width", vectorBits);
    function.addFnAttr("min-legal-vector-width", vectorBits);
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.setAlignment(llvm::Align(64));
  }
  return result;
}

Status optimize(llvm::Module &module) {
  auto machine = targetMachineOf(module);
  if (!machine)
    return machine.status();
  llvm::PassBuilder builder(machine->get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([library = noLibrary()] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager loopPasses;
  loopPasses.addPass(llvm::LoopRotatePass());
  loopPasses.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loopPasses), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::createModuleToFunctionPassAdaptor(std::move(passes)).run(module, modules);
  return Status::ok();
}

Result<std::string> emitObject(llvm::Module &module) {
  auto found = targetMachineOf(module);
  if (!found)
    return found.status();
  auto &machine = static_cast<llvm::CodeGenTargetMachineImpl &>(**found);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(noLibrary()));
  auto *moduleInfo = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig *config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(moduleInfo);
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  // In place of addISelPasses, which improves loops and addresses that LowerToCpu has written as they should be (loop
  // strength reduction alone is an eighth of a compile) and lowers what it never emits.
  config->addISelPrepare();
  if (config->addInstSelector())
    return Status::error(ErrorCode::kInternal, "LLVM cannot select instructions");
  passes.add(llvm::Pass::createPass(&llvm::FinalizeISelID));
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
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
