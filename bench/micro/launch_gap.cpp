// Launches: the time from kernel to kernel of a stream or a graph, with and without programmatic dependent launch.
#include "bench/measure/timing.h"
#include "bench/micro/micro_group.h"

namespace nsa::bench {
namespace {

constexpr int kKernels = 200;
constexpr int64_t kWorkClocks = 10'000;
constexpr int64_t kClockProbe = 20'000'000; // some 10 ms

MicroSource spinSource() { return {"spin.cu", {}}; }

struct GapJob {
  const char *text;
  unsigned blocksPerMultiprocessor; // 0: one block of a warp on the whole card
  unsigned sharedKb;
  int64_t clocks;
};
constexpr GapJob kGapJobs[] = {{"empty", 0, 0, 0},
                               {"empty, a block a multiprocessor", 1, 0, 0},
                               {"work, 200 KB a block", 1, 200, kWorkClocks},
                               {"work, 48 KB a block", 1, 48, kWorkClocks}};

// Clocks of the multiprocessors in a microsecond.
Result<double> clockRate(MicroDevice &device) {
  int64_t clocks = kClockProbe;
  NSA_ASSIGN_OR_RETURN(std::vector<double> times,
                       device.time(5, [&] { return device.launch(spinSource(), {}, {&clocks}); }));
  return static_cast<double>(kClockProbe) / (median(times) * 1e3);
}

Status measureGap(MicroDevice &device, MicroReport &report, const GapJob &job, double clocksPerUs) {
  for (const bool graph : {false, true})
    for (const bool programmatic : {false, true}) {
      int64_t clocks = job.clocks;
      MicroLaunch launch{.programmatic = programmatic};
      if (job.blocksPerMultiprocessor)
        launch = {.blocks = device.multiprocessors() * job.blocksPerMultiprocessor,
                  .threads = 256,
                  .sharedBytes = job.sharedKb << 10,
                  .programmatic = programmatic};
      tools::Recording run = [&] { return device.launch(spinSource(), launch, {&clocks}, kKernels); };
      if (graph) {
        NSA_ASSIGN_OR_RETURN(run, device.accelerator().record(run));
      }
      NSA_ASSIGN_OR_RETURN(std::vector<double> times, device.time(report.samples(), run));
      for (double &sample : times)
        sample = sample * 1e3 / kKernels - static_cast<double>(job.clocks) / clocksPerUs;
      NSA_RETURN_IF_ERROR(report.add("launch",
                                     std::string(job.text) + ", " + (graph ? "graph" : "stream") +
                                         (programmatic ? ", programmatic" : "") + (job.clocks ? ": gap" : ": period"),
                                     "us", std::move(times), {{"programmatic", programmatic ? 1 : 0}}));
    }
  return Status::ok();
}

} // namespace

std::vector<MicroSource> launchGapSources() { return {spinSource()}; }

Status measureLaunchGaps(MicroDevice &device, MicroReport &report) {
  NSA_ASSIGN_OR_RETURN(double rate, clockRate(device));
  NSA_RETURN_IF_ERROR(report.add("launch", "clock of a multiprocessor that only counts", "MHz", {rate}));
  for (const GapJob &job : kGapJobs)
    NSA_RETURN_IF_ERROR(measureGap(device, report, job, rate));
  // One launch alone, host and device: what a single call takes until it is seen to have ended.
  int64_t none = 0;
  NSA_ASSIGN_OR_RETURN(std::vector<double> alone,
                       device.time(report.samples(), [&] { return device.launch(spinSource(), {}, {&none}); }));
  for (double &sample : alone)
    sample *= 1e3;
  return report.add("launch", "empty, alone between two events", "us", std::move(alone));
}

} // namespace nsa::bench
