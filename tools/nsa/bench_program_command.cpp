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
  std::string peers;
  bool json = false;
};

Status measureProgram(ProgramBenchFlags &flags) {
  bench::ProgramChoice &choice = flags.choice;
  NSA_ASSIGN_OR_RETURN(choice.request, flags.program.request());
  NSA_ASSIGN_OR_RETURN(bench::BenchDevice device, bench::BenchDevice::open(flags.engine.settings));
  std::unique_ptr<bench::PeerProcess> peers;
  if (!flags.peers.empty()) {
    NSA_ASSIGN_OR_RETURN(peers, bench::PeerProcess::start(flags.peers, device.name()));
  }
  NSA_ASSIGN_OR_RETURN(const nlohmann::ordered_json report, measureAndPrint(choice, flags.json, [&] {
                         return bench::benchProgram(device, choice, peers.get());
                       }));
  if (!flags.json)
    printResultsPlace(choice, report.at("results").at(0).value("program", ""));
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
  addOption(command, "--peers FILE", flags.peers,
            "Script that measures other implementations of the program (bench/peers/torch_programs.py: the examples in "
            "torch and Triton)");
  addResults(command, flags.choice, "NAME.json and NAME.csv, after the program's name");
  addJsonFlag(command, flags.json);
}

} // namespace nsa::tools
