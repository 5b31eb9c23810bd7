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

std::vector<ExponentJob> exponentJobs() {
  std::vector<ExponentJob> jobs{{.products = false, .warpgroups = 3}};
  for (const bool overlap : {true, false})
    for (const int exponents : {0, 64, 96, 128})
      for (const int warpgroups : {1, 2, 3})
        if (overlap || exponents)
          jobs.push_back({.exponents = exponents, .overlap = overlap, .warpgroups = warpgroups});
  return jobs;
}

} // namespace

std::vector<MicroSource> exponentSources() {
  std::vector<MicroSource> sources;
  for (const ExponentJob &job : exponentJobs())
    sources.push_back(exponentSource(job));
  return sources;
}

Status measureExponents(MicroDevice &device, MicroReport &report) {
  for (const ExponentJob &job : exponentJobs()) {
    const int tileClocks = (job.products ? kProductFlops / static_cast<int>(kPeakFlopsPerClock) : 0) +
                           job.exponents * kWarpgroupThreads / kExponentsPerClock;
    const int tiles = kClocksPerSample / (tileClocks * job.warpgroups);
    NSA_ASSIGN_OR_RETURN(std::vector<double> clocks,
                         blockClocks(device, report.samples(), exponentSource(job),
                                     {.blocks = device.multiprocessors(),
                                      .threads = static_cast<unsigned>(job.warpgroups * kWarpgroupThreads),
                                      .sharedBytes = kSharedBytes},
                                     tiles));
    const double flops = static_cast<double>(kProductFlops) * tiles * job.warpgroups;
    const double exponents = static_cast<double>(job.exponents) * kWarpgroupThreads * tiles * job.warpgroups;
    for (double &sample : clocks)
      sample = job.products ? 100 * flops / sample / kPeakFlopsPerClock : exponents / sample;
    const std::string what = std::to_string(job.exponents) + " exponents a thread and tile ";
    NSA_RETURN_IF_ERROR(report.add("exponent",
                                   what + (job.products ? job.overlap ? "beside" : "after" : "without") +
                                       " its products, " + std::to_string(job.warpgroups) + " warpgroups",
                                   job.products ? "% of peak" : "ex2/clock/SM", std::move(clocks),
                                   {{"exponents", job.exponents}, {"warpgroups", job.warpgroups}}));
  }
  return Status::ok();
}

} // namespace nsa::bench
