// nsa_bench_micro: what the mechanisms of a Hopper GPU do, one at a time (docs/hopper_measurements.md).
#include "bench/measure/bench_program.h"
#include "bench/measure/timing.h"
#include "bench/micro/micro_group.h"

#include <algorithm>

namespace nsa::bench {
namespace {

struct MicroFlags : CommonFlags {
  MicroFlags() { device = "cuda:0"; }
  std::vector<std::string> groups;
  int samples = 9;
};

Status runMicro(const MicroFlags &flags) {
  const double start = wallMs();
  for (const std::string &name : flags.groups)
    if (std::none_of(microGroups().begin(), microGroups().end(),
                     [&](const MicroGroup &group) { return name == group.name; })) {
      std::string known;
      for (const MicroGroup &group : microGroups())
        known += (known.empty() ? "" : ", ") + std::string(group.name);
      return Status::invalid("--groups", name, "must be among " + known);
    }
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<MicroDevice> device, MicroDevice::open(flags.device));
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(flags.engineSettings(NSA_MISS_FAIL)));
  NSA_ASSIGN_OR_RETURN(BenchReport file, BenchReport::create(engine.get(), flags.results, "micro",
                                                             {{"nvrtc", device->compiler().version()}},
                                                             {"group", "measure", "median", "unit", "least", "most"}));
  MicroReport report(file, flags.quick ? 3 : flags.samples);
  for (const MicroGroup &group : microGroups()) {
    if (!flags.groups.empty() && std::find(flags.groups.begin(), flags.groups.end(), group.name) == flags.groups.end())
      continue;
    NSA_RETURN_IF_ERROR(device->load(group.sources()));
    NSA_RETURN_IF_ERROR(group.measure(*device, report));
  }
  return file.setFact("seconds", (wallMs() - start) * 1e-3);
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::MicroFlags flags;
  nsa::bench::BenchProgram program("micro", "Measures the mechanisms of a Hopper GPU, one at a time.", flags,
                                   "Three samples of everything");
  program.addDevice();
  program.options()
      .add_option("--groups", flags.groups, "Only these (default: all)")
      ->delimiter(',')
      ->type_name("NAMES");
  program.addCount("--samples", flags.samples, "Samples of each measurement", 3, 1000);
  return program.run(argc, argv, [&] { return nsa::bench::runMicro(flags); });
}
