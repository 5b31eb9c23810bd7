// `nsa compile`: one kernel down to a chosen stage, without a GPU and without touching a cache.
#include "tools/nsa/command/program_flags.h"
#include "tools/nsa/files/file_io.h"

#include "runtime/base/key_splits.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/graph/pipeline.h"
#include "runtime/engine/options/compile_request.h"
#include "runtime/engine/program/program_task.h"

#include <algorithm>
#include <cstdio>

namespace nsa::tools {
namespace {

struct Stage {
  std::string_view name;
  nsa_compiler_stage stage;
  bool gpu, cpu;
};
constexpr Stage kStages[] = {
    {"template", NSA_COMPILER_STAGE_TEMPLATE, true, true},   {"tile", NSA_COMPILER_STAGE_TILE, true, true},
    {"scheduled", NSA_COMPILER_STAGE_SCHEDULED, true, true}, {"cuda", NSA_COMPILER_STAGE_CUDA, true, false},
    {"llvm", NSA_COMPILER_STAGE_LLVM, false, true},          {"ptx", NSA_COMPILER_STAGE_PTX, true, false},
    {"cubin", NSA_COMPILER_STAGE_BINARY, true, false},       {"image", NSA_COMPILER_STAGE_BINARY, false, true}};

struct CompileFlags {
  SpecFlags spec;
  ProgramFlags program; // its `settings` hold an operator's, too
  std::string target, emit, outputPath, templateName, compilerPath, nvrtcPath, templateDir, cpuFeatures;
  bool list = false;
  bool json = false;
};

const Stage &stageNamed(const std::string &name) { return *std::ranges::find(kStages, name, &Stage::name); }

// An operator of several kernels has no stage to show: each of them has. A plan may take slots or not, by what was
// measured, so the kernels of both ways are named.
Status severalKernels(const Spec &spec, const Maxima &maxima) {
  std::vector<std::string_view> names;
  for (const bool slots : {false, true}) {
    if (slots && !(spec.hasLists() && mayTakeSlots(spec, maxima)))
      continue;
    Spec routed = spec;
    routed.dqSlots = slots;
    for (const Step &step : stepsOf(routed, maxima))
      if (const std::string_view name = operatorName(step.spec.op); std::ranges::find(names, name) == names.end())
        names.push_back(name);
  }
  std::string list;
  for (std::string_view name : names)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return Status::invalid("--op", std::string(operatorName(spec.op)), "is several kernels, and this compiles one",
                         "name one of them: " + list);
}

// Of what --set names, the program's choices are the configuration, and all else are values.
Result<CompileRequest> programRequest(const CompileFlags &flags, const nsa::EngineOptions &options) {
  NSA_ASSIGN_OR_RETURN(ProgramRequest given, flags.program.request());
  NSA_ASSIGN_OR_RETURN(ProgramSource::Pointer source, ProgramSource::read(given.path));
  std::map<std::string, std::string> config;
  for (const std::string &choice : source->choices)
    if (auto set = given.values.extract(choice))
      config.insert(std::move(set));
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramInterface> interface,
                       ProgramInterface::make(*source, given.values, ProgramInterface::Sizes::kOpen));
  NSA_ASSIGN_OR_RETURN(const KernelTask task, programTask(source, std::move(interface)));
  CompileRequest request = requestOf(task.problem, options, flags.target);
  request.program = std::move(source);
  request.config = std::move(config);
  return request;
}

Result<CompileRequest> makeRequest(const CompileFlags &flags, const nsa::EngineOptions &options) {
  if (flags.program.isGiven())
    return programRequest(flags, options);
  NSA_ASSIGN_OR_RETURN(SpecFlags::Chosen chosen, flags.spec.resolve());
  if (isWhole(chosen.spec.op))
    return severalKernels(chosen.spec, chosen.maxima);
  CompileRequest request = requestOf(ProblemKey::of(Problem::make(chosen.spec, chosen.maxima)), options, flags.target);
  request.templateName = flags.templateName;
  NSA_ASSIGN_OR_RETURN(request.config, settingsOf(flags.program.settings));
  return request;
}

Status listCandidates(const CompilerLibrary &compiler, const CompileRequest &request, bool json) {
  NSA_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, compiler.list(request));
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Candidate &candidate : candidates)
      list.push_back(
          {{"template", candidate.templateName}, {"config", candidate.config}, {"cost", candidate.predictedCost}});
    printJson({{"target", request.target}, {"candidates", list}});
    return Status::ok();
  }
  std::printf("%zu candidates for %s, cheapest predicted first:\n", candidates.size(), request.target.c_str());
  std::printf("%12s  %-16s %s\n", "cost", "template", "config");
  for (const Candidate &candidate : candidates)
    std::printf("%12.6g  %-16s %s\n", candidate.predictedCost, candidate.templateName.c_str(),
                candidate.config.c_str());
  return Status::ok();
}

Status compile(const CompileFlags &flags) {
  nsa::EngineOptions options;
  options.compilerPath = flags.compilerPath;
  options.nvrtcPath = flags.nvrtcPath;
  options.templateDir = flags.templateDir;
  options.cpuFeatures = flags.cpuFeatures;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  NSA_ASSIGN_OR_RETURN(CompileRequest request, makeRequest(flags, options));
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> compiler, CompilerLibrary::open(options.compilerPath));
  if (flags.list)
    return listCandidates(*compiler, request, flags.json);

  const Stage &stage = stageNamed(flags.emit);
  if (stage.stage != NSA_COMPILER_STAGE_BINARY) {
    NSA_ASSIGN_OR_RETURN(std::string text, compiler->emit(request, stage.stage));
    if (flags.json && flags.outputPath.empty()) {
      printJson({{"target", request.target}, {"stage", stage.name}, {"text", text}});
      return Status::ok();
    }
    if (flags.outputPath.empty() && !text.ends_with('\n'))
      text += '\n';
    NSA_RETURN_IF_ERROR(writeOutput(flags.outputPath, text));
    if (flags.json)
      printJson(
          {{"target", request.target}, {"stage", stage.name}, {"output", flags.outputPath}, {"bytes", text.size()}});
    return Status::ok();
  }

  NSA_ASSIGN_OR_RETURN(CompiledKernel kernel, compiler->compile(request));
  NSA_RETURN_IF_ERROR(
      writeOutput(flags.outputPath, {reinterpret_cast<const char *>(kernel.binary.data()), kernel.binary.size()}));
  if (flags.json)
    printJson({{"target", request.target},
               {"stage", stage.name},
               {"output", flags.outputPath},
               {"bytes", kernel.binary.size()},
               {"manifest", kernel.manifestText},
               {"milliseconds", {{"render", kernel.renderMs}, {"compile", kernel.compileMs}}}});
  else
    std::printf("%s: %zu bytes, rendered in %s, compiled in %s\n%s", flags.outputPath.c_str(), kernel.binary.size(),
                millisecondsText(kernel.renderMs).c_str(), millisecondsText(kernel.compileMs).c_str(),
                kernel.manifestText.c_str());
  return Status::ok();
}

// Rules between flags, which are usage errors.
void checkFlags(const CompileFlags &flags) {
  if (flags.list)
    return;
  const Stage &stage = stageNamed(flags.emit);
  const bool cpu = flags.target == "cpu";
  if (cpu ? !stage.cpu : !stage.gpu)
    throw CLI::ValidationError("--emit", flags.emit + " does not exist for --target " + flags.target +
                                             (cpu ? " (template, tile, scheduled, llvm, image do)"
                                                  : " (template, tile, scheduled, cuda, ptx, cubin do)"));
  if (stage.stage == NSA_COMPILER_STAGE_BINARY && flags.outputPath.empty())
    throw CLI::ValidationError("--emit", flags.emit + " is binary: name a file with --output");
}

} // namespace

void addCompileCommand(CLI::App &app, Action &action) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App *command = app.add_subcommand("compile", "Compile one kernel down to a stage and show it; needs no GPU");
  flags->spec.add(*command, OperatorChoice::kKernels);
  addOption(*command, "--target TARGET", flags->target, compileTargetsText(), compileTarget())->required();
  std::vector<std::string> names;
  for (const Stage &stage : kStages)
    names.emplace_back(stage.name);
  auto *emit = addOption(*command, "--emit STAGE", flags->emit,
                         "template, tile, scheduled, cuda, llvm, ptx, cubin, or image (the CPU's binary)",
                         CLI::IsMember(names).description(""));
  emit->excludes(command->add_flag("--list", flags->list, "List the candidates instead, cheapest predicted first"));
  addOption(*command, "-o,--output FILE", flags->outputPath, "Write there instead of to stdout");
  addOption(*command, "--template NAME", flags->templateName, "Only this template (default: the cheapest that serves)");
  addSettings(*command, flags->program.settings,
              "One of the template's choices, e.g. query_tile=64, or a value of --program; may be repeated");
  flags->program.add(
      *command, {"--op", "--config", "--input", "--batch", "--seqlen-q", "--seqlen-k", "--tokens-q", "--template"});
  addOption(*command, "--template-dir DIR", flags->templateDir,
            "Templates from a folder instead of the built-in ones (default: NSA_TEMPLATE_DIR)");
  addOption(*command, "--cpu-features LEVEL", flags->cpuFeatures,
            "x86-64-v3 or x86-64-v4 (default: NSA_CPU_FEATURES, else this machine's)");
  addCompilerOption(*command, flags->compilerPath);
  addOption(*command, "--nvrtc FILE", flags->nvrtcPath, "NVRTC's library (default: NSA_NVRTC, else searched)");
  addJsonFlag(*command, flags->json);
  command->callback([flags, &action] {
    if (!flags->list && flags->emit.empty())
      throw CLI::RequiredError("--emit or --list");
    checkFlags(*flags);
    action = [flags] { return compile(*flags); };
  });
}

} // namespace nsa::tools
