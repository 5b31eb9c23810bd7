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

// The time from kernel to kernel beyond the kernel's work.
Result<std::vector<double>> sampleGap(MicroDevice &device, int samples, const GapJob &job, bool graph,
                                      bool programmatic) {
  NSA_ASSIGN_OR_RETURN(const double clocksPerUs, clockRate(device));
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
  return converted(device.time(samples, run), [&](double milliseconds) {
    return milliseconds * 1e3 / kKernels - static_cast<double>(job.clocks) / clocksPerUs;
  });
}

} // namespace

std::vector<MicroJob> launchGapJobs() {
  std::vector<MicroJob> jobs;
  const auto add = [&](const std::string &measure, const char *unit, const nlohmann::ordered_json &columns,
                       auto sample) { jobs.push_back({measure, unit, spinSource(), columns, sample}); };
  add("clock of a multiprocessor that only counts", "MHz", {},
      [](MicroDevice &device, int) -> Result<std::vector<double>> {
        NSA_ASSIGN_OR_RETURN(const double rate, clockRate(device));
        return std::vector{rate};
      });
  for (const GapJob &job : kGapJobs)
    for (const bool graph : {false, true})
      for (const bool programmatic : {false, true})
        add(std::string(job.text) + ", " + (graph ? "graph" : "stream") + (programmatic ? ", programmatic" : "") +
                (job.clocks ? ": gap" : ": period"),
            "us", {{"programmatic", programmatic ? 1 : 0}},
            [=](MicroDevice &device, int samples) { return sampleGap(device, samples, job, graph, programmatic); });
  // One launch alone, host and device: what a single call takes until it is seen to have ended.
  add("empty, alone between two events", "us", {}, [](MicroDevice &device, int samples) {
    int64_t none = 0;
    return converted(device.time(samples, [&] { return device.launch(spinSource(), {}, {&none}); }),
                     [](double milliseconds) { return milliseconds * 1e3; });
  });
  return jobs;
}

} // namespace nsa::bench
