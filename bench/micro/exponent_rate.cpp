// Exponents beside products: what the unit of special functions does while the tensor cores work.
#include "bench/micro/product_rate.h"

namespace nsa::bench {
namespace {

constexpr int kClocksPerSample = 400'000;
constexpr int kExponentsPerClock = 16; // of a multiprocessor (CUDA programming guide, arithmetic throughput)
constexpr int kWarpgroupThreads = 128;
constexpr int kColumns = 128, kDepth = 128;
constexpr int kProductFlops = 2 * 2 * 64 * kColumns * kDepth; // of a warpgroup: scores, and the sum of values
constexpr unsigned kSharedBytes = 3072 + (3 * 64 + kColumns) * kDepth * 2;

struct ExponentJob {
  int exponents = 64; // a thread, to one tile of 64 x 128 scores
  bool products = true, overlap = true;
  int warpgroups = 1;
};

MicroSource exponentSource(const ExponentJob &job) {
  return {"exponent_rate.cu", {{"kExponents", job.exponents}, {"kProducts", job.products}, {"kOverlap", job.overlap}}};
}

std::vector<ExponentJob> measured() {
  std::vector<ExponentJob> jobs{{.products = false, .warpgroups = 3}};
  for (const bool overlap : {true, false})
    for (const int exponents : {0, 64, 96, 128})
      for (const int warpgroups : {1, 2, 3})
        if (overlap || exponents)
          jobs.push_back({.exponents = exponents, .overlap = overlap, .warpgroups = warpgroups});
  return jobs;
}

Result<std::vector<double>> sampleExponents(MicroDevice &device, int samples, const ExponentJob &job) {
  const int tileClocks = (job.products ? kProductFlops / static_cast<int>(kPeakFlopsPerClock) : 0) +
                         job.exponents * kWarpgroupThreads / kExponentsPerClock;
  const int tiles = kClocksPerSample / (tileClocks * job.warpgroups);
  const double flops = static_cast<double>(kProductFlops) * tiles * job.warpgroups;
  const double exponents = static_cast<double>(job.exponents) * kWarpgroupThreads * tiles * job.warpgroups;
  return converted(
      blockClocks(device, samples, exponentSource(job),
                  {.blocks = device.multiprocessors(),
                   .threads = static_cast<unsigned>(job.warpgroups * kWarpgroupThreads),
                   .sharedBytes = kSharedBytes},
                  tiles),
      [&](double clocks) { return job.products ? 100 * flops / clocks / kPeakFlopsPerClock : exponents / clocks; });
}

} // namespace

std::vector<MicroJob> exponentJobs() {
  std::vector<MicroJob> jobs;
  for (const ExponentJob &job : measured())
    jobs.push_back({std::to_string(job.exponents) + " exponents a thread and tile " +
                        (job.products ? job.overlap ? "beside" : "after" : "without") + " its products, " +
                        std::to_string(job.warpgroups) + " warpgroups",
                    job.products ? "% of peak" : "ex2/clock/SM",
                    exponentSource(job),
                    {{"exponents", job.exponents}, {"warpgroups", job.warpgroups}},
                    [job](MicroDevice &device, int samples) { return sampleExponents(device, samples, job); }});
  return jobs;
}

} // namespace nsa::bench
