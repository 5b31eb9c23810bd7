// nsa_bench_micro: what the mechanisms of a Hopper GPU do, one at a time (docs/hopper_measurements.md).
#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/timing.h"
#include "bench/micro/micro_group.h"
#include "runtime/base/text.h"

#include <algorithm>

namespace nsa::bench {
namespace {

struct MicroFlags : CommonFlags {
  MicroFlags() { device = "cuda:0"; }
  std::vector<std::string> groups;
  int samples = 9;
};

Status measureGroup(const MicroGroup &group, MicroDevice &device, int samples, BenchReport &report) {
  const std::vector<MicroJob> jobs = group.jobs();
  std::vector<MicroSource> sources;
  for (const MicroJob &job : jobs)
    sources.push_back(job.source);
  NSA_RETURN_IF_ERROR(device.load(sources));
  for (const MicroJob &job : jobs) {
    NSA_ASSIGN_OR_RETURN(std::vector<double> taken, job.sample(device, samples));
    if (taken.empty())
      continue;
    std::sort(taken.begin(), taken.end());
    std::printf("%-9s %-74s %10.4g %-12s (%.4g to %.4g)\n", group.name, job.measure.c_str(), median(taken),
                job.unit.c_str(), taken.front(), taken.back());
    std::fflush(stdout);
    nlohmann::ordered_json row = {{"group", group.name},    {"measure", job.measure}, {"median", median(taken)},
                                  {"unit", job.unit},       {"least", taken.front()}, {"most", taken.back()},
                                  {"samples", taken.size()}};
    if (!job.columns.is_null())
      row.update(job.columns);
    NSA_RETURN_IF_ERROR(report.add(std::move(row)));
  }
  return Status::ok();
}

Status runMicro(const MicroFlags &flags) {
  const double start = wallMs();
  for (const std::string &name : flags.groups)
    if (std::ranges::none_of(kMicroGroups, [&](const MicroGroup &group) { return name == group.name; }))
      return Status::invalid("--groups", name, "must be among " + joined(kMicroGroups, ", ", &MicroGroup::name));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<MicroDevice> device, MicroDevice::open(flags.device));
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(flags.engineSettings(NSA_MISS_FAIL)));
  NSA_ASSIGN_OR_RETURN(BenchReport report,
                       BenchReport::create(engine.get(), flags.results, "micro",
                                           {{"nvrtc", device->compiler().version()}},
                                           {"group", "measure", "median", "unit", "least", "most"}));
  for (const MicroGroup &group : kMicroGroups)
    if (flags.groups.empty() || std::ranges::find(flags.groups, group.name) != flags.groups.end())
      NSA_RETURN_IF_ERROR(measureGroup(group, *device, flags.quick ? 3 : flags.samples, report));
  return report.setFact("seconds", (wallMs() - start) * 1e-3);
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
