// `nsa bench program`: the kernel of a program of one's own beside the work that the program declares.
#include "bench/verbs/program_bench.h"
#include "tools/nsa/bench_verbs.h"
#include "tools/nsa/command/program_flags.h"
#include "tools/support/number_option.h"

namespace nsa::tools {
namespace {

struct ProgramBenchFlags {
  ProgramFlags program;
  EngineFlags engine;
  bench::ProgramChoice choice;
  bool json = false;
};

Status measureProgram(ProgramBenchFlags &flags) {
  bench::ProgramChoice &choice = flags.choice;
  NSA_ASSIGN_OR_RETURN(choice.request, flags.program.request());
  NSA_ASSIGN_OR_RETURN(bench::BenchDevice device, bench::BenchDevice::open(flags.engine.settings));
  NSA_RETURN_IF_ERROR(
      measureAndPrint(choice, flags.json, [&] { return bench::benchProgram(device, choice); }).status());
  if (!flags.json)
    printResultsPlace(choice, "program");
  return Status::ok();
}

} // namespace

void addProgramBench(CLI::App &bench, Action &action) {
  auto [command, flags] = addVerb<ProgramBenchFlags>(
      bench, action, "program",
      "A program of your own: its time, and the share of the roof that its declared work reaches", measureProgram);
  flags.program.add(command, {});
  addSampling(command, flags.choice);
  flags.engine.addKernelBudget(command);
  flags.engine.addDevice(command);
  addResults(command, flags.choice, "program.csv");
  addJsonFlag(command, flags.json);
}

} // namespace nsa::tools
