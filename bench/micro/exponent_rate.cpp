// Exponents beside products: what the unit of special functions does while the tensor cores work.
#include "bench/micro/product_rate.h"

namespace nsa::bench {
namespace {

constexpr int kClocksPerSample = 400'000;
constexpr int kExponentsPerClock = 16; // of a multiprocessor (CUDA programming guide, arithmetic throughput)

ProductJob besideProducts(int exponents, bool overlap, int warpgroups) {
  return {.columns = 128, .registers = true, .steps = 16, .exponents = exponents, .overlap = overlap,
          .warpgroups = warpgroups};
}

std::vector<ProductJob> exponentJobs() {
  std::vector<ProductJob> jobs{{.steps = 0, .exponents = 64, .warpgroups = 3}};
  for (const int exponents : {0, 64, 96, 128})
    for (const int warpgroups : {1, 2, 3})
      jobs.push_back(besideProducts(exponents, true, warpgroups));
  for (const int warpgroups : {1, 2, 3})
    jobs.push_back(besideProducts(64, false, warpgroups));
  return jobs;
}

} // namespace

std::vector<MicroSource> exponentSources() {
  std::vector<MicroSource> sources;
  for (const ProductJob &job : exponentJobs())
    sources.push_back(productSource(job));
  return sources;
}

Status measureExponents(MicroDevice &device, MicroReport &report) {
  for (const ProductJob &job : exponentJobs()) {
    const int clocks = job.columns / 2 * job.steps + job.exponents * 128 / kExponentsPerClock;
    Result<ProductRate> rate =
        productRate(device, report.samples(), job, kClocksPerSample / (clocks * job.warpgroups));
    if (!rate)
      return rate.status();
    const nlohmann::ordered_json columns = {{"exponents", job.exponents}, {"warpgroups", job.warpgroups}};
    const std::string text = std::to_string(job.exponents) + " exponents a thread " +
                             (job.overlap ? "beside" : "after") + " " + std::to_string(job.steps) + " wgmma, " +
                             std::to_string(job.warpgroups) + " warpgroups";
    if (job.steps)
      NSA_RETURN_IF_ERROR(report.add("exponent", text, "% of peak", std::move(rate->share), columns));
    if (job.exponents)
      NSA_RETURN_IF_ERROR(report.add("exponent", text, "ex2/clock/SM", std::move(rate->exponents), columns));
  }
  return Status::ok();
}

} // namespace nsa::bench
