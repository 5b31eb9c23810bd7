// `nsa tune`: the command line, and the tuning of one spec on this machine.
#include "tools/nsa/command/program_flags.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/tune/tune_report.h"
#include "tools/nsa/tune/tune_verbs.h"
#include "tools/support/number_option.h"
#include "tools/support/progress.h"

#include <cstdio>

namespace nsa::tools {
namespace {

struct TuneFlags {
  SpecFlags spec;
  ProgramFlags program;
  EngineFlags engine;
  bool json = false;
  std::string jsonPath; // "": stdout
};

// Tunes the kernels of a spec or the kernel of a program; the report.
using Tune = std::function<Result<nlohmann::json>(nsa_engine *engine)>;

Ending tuneAndReport(const TuneFlags &flags, const std::string &what, const Tune &tune) {
  EngineSettings settings = flags.engine.settings;
  settings.missPolicy = NSA_MISS_DEFAULT; // asked for, tuning is done whatever NSA_MISS says of plans
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(settings));
  NSA_ASSIGN_OR_RETURN(const nlohmann::json report, [&] {
    Progress progress;
    progress.step("tuning " + what);
    return tune(engine.get());
  }());
  if (flags.json)
    NSA_RETURN_IF_ERROR(writeJson(flags.jsonPath, report));
  std::string trouble;
  bool isLeft = false; // a kernel whose budget ended before anything was measured
  const bool printsText = !flags.json || !flags.jsonPath.empty();
  const std::vector<nlohmann::json> kernels = kernelReports(report);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (printsText)
      printText("%s%s", i ? "\n" : "", tuneTable(kernels[i]).c_str());
    isLeft = isLeft || !kernels[i].value("tuned", true);
    if (trouble.empty())
      trouble = kernels[i].value("store_trouble", "");
  }
  if (printsText) {
    NSA_ASSIGN_OR_RETURN(nlohmann::json facts, describeEngine(engine.get()));
    printText("\n%s", placesText(facts["cache"].value("path", ""), flags.jsonPath, "").c_str());
  }
  if (!trouble.empty())
    return Status::error(ErrorCode::kIoError, "the winner was not stored: " + trouble);
  return isLeft ? ExitCode::kLeft : ExitCode::kDone;
}

Ending tuneOne(const TuneFlags &flags) {
  if (flags.program.isGiven()) {
    NSA_ASSIGN_OR_RETURN(const ProgramRequest request, flags.program.request());
    return tuneAndReport(flags, request.path, [&](nsa_engine *engine) { return request.tune(engine); });
  }
  NSA_ASSIGN_OR_RETURN(SpecFlags::Chosen chosen, flags.spec.resolve());
  return tuneAndReport(flags, std::string(operatorName(chosen.spec.op)),
                       [&](nsa_engine *engine) { return tune(engine, chosen.spec, chosen.maxima); });
}

} // namespace

void addTuneCommand(CLI::App &app, Action &action) {
  auto flags = std::make_shared<TuneFlags>();
  auto whole = std::make_shared<WorkloadFlags>();
  CLI::App *command = app.add_subcommand("tune", "Measure candidates of workloads, a spec or a program; store winners");
  command->footer("The exit code is 3 where kernels are left to measure: the same command goes on from there.");
  CLI::Option *workload = command
                              ->add_option("WORKLOAD", whole->workloads,
                                           "Workloads: JSON files, plan records (NSA_RECORD), names of ready-made "
                                           "ones (--list), or all of these")
                              ->type_name("");
  flags->spec.add(*command);
  CLI::Option *op = command->get_option("--op")->required(false)->excludes(workload);
  CLI::Option *config = command->get_option("--config")->required(false)->needs(op);
  op->needs(config);
  for (const char *name : {"--input", "--batch", "--seqlen-q", "--seqlen-k", "--tokens-q"})
    command->get_option(name)->needs(op);
  CLI::Option *program = flags->program.add(
      *command, {"--op", "--config", "--input", "--batch", "--seqlen-q", "--seqlen-k", "--tokens-q"});
  program->excludes(workload);
  addOption(*command, "--operators OPERATORS", whole->operators,
            "Of the workloads only kernels of these operators, separated by commas: dense,window,cmp")
      ->delimiter(',')
      ->needs(workload);
  using enum TuneDirection;
  addOption(
      *command, "--direction DIRECTION", whole->direction,
      "Of the workloads' calls: forward, the calls themselves; backward, their gradients; both (default: forward)")
      ->transform(namedValue<TuneDirection>({{"forward", kForward}, {"backward", kBackward}, {"both", kBoth}}))
      ->needs(workload);
  CLI::Option *list = command->add_flag("--list", whole->list, "List the ready-made workloads");
  CLI::Option *device = flags->engine.addDevice(*command, "; of a workload also several: cuda:0,cuda:1");
  flags->engine.addCache(*command);
  CLI::Option *perKernel = flags->engine.addKernelBudget(*command);
  CLI::Option *exhaustive = command->add_flag_callback(
      "--exhaustive", [flags] { flags->engine.settings.tuneExhaustive = NSA_ON; },
      "Compile every candidate and measure each to the end, however long it takes: what the usual search is held "
      "to");
  CLI::Option *budget =
      addOption(*command, "--budget SECONDS", whole->budgetSeconds,
                "Of workloads: seconds that the whole run may take; a later run goes on from there", secondsAbove0());
  command->add_flag("--again", whole->again, "Measure also what is stored already")->needs(workload);
  CLI::Option *dryRun =
      command->add_flag("--dry-run", whole->dryRun, "Only say what would be measured; with --target without a device")
          ->needs(workload);
  CLI::Option *compileOnly =
      command
          ->add_flag("--compile-only", whole->compileOnly,
                     "Without a device: compile the default of each kernel for --target, store it untuned")
          ->needs(workload)
          ->excludes(dryRun, budget, perKernel, exhaustive, device);
  CLI::Option *target =
      addOption(*command, "--target TARGETS", whole->targets,
                "Of --compile-only and --dry-run: " + compileTargetsText() + ", or several separated by commas",
                compileTarget())
          ->delimiter(',')
          ->excludes(device);
  compileOnly->needs(target);
  CLI::Option *json =
      addOption(*command, "--json [FILE]", flags->jsonPath, "Print a JSON report, or write it to FILE")->expected(0, 1);
  addOption(*command, "--report FILE", whole->reportPath, "Write what was measured as one HTML file, with plots")
      ->needs(workload)
      ->excludes(dryRun, compileOnly);
  command->callback([=, &action] {
    if (!*workload && !*op && !*program && !*list)
      throw CLI::RequiredError("WORKLOAD, --op, --program or --list");
    if (*budget && !*workload)
      throw CLI::RequiresError("--budget", "WORKLOAD; with --op and --program the option is --kernel-budget");
    if (*target && !*dryRun && !*compileOnly)
      throw CLI::ValidationError("--target", "needs --compile-only or --dry-run");
    flags->json = static_cast<bool>(*json);
    flags->engine.settings.recordPath = "none"; // what a tuning plans is no workload
    whole->engine = flags->engine.settings;
    if (*json)
      whole->json = flags->jsonPath;
    if (*list)
      action = listWorkloads;
    else if (*workload)
      action = [whole] { return tuneWorkloads(*whole); };
    else
      action = [flags] { return tuneOne(*flags); };
  });
}

} // namespace nsa::tools
