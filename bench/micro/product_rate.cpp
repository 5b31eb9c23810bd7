#include "bench/micro/product_rate.h"

#include <algorithm>

namespace nsa::bench {
namespace {

constexpr int kRows = 64, kInner = 16, kWarpgroupThreads = 128;
constexpr int kDepth = 128; // of A and B in shared memory
constexpr int kClocksPerSample = 400'000;
constexpr int kCardGroups = 20'000; // some 10 ms

constexpr int kColumns[] = {16, 32, 64, 128, 256};
constexpr int kMmaWarps[] = {4, 8, 16};
constexpr int kMmaFlops = 16 * 8 * 16 * 2, kMmaChains = 8;

MicroSource mmaSource() { return {"mma_rate.cu", {{"kChains", kMmaChains}}}; }

std::vector<ProductJob> rateJobs() {
  std::vector<ProductJob> jobs;
  for (const bool registers : {false, true})
    for (const int columns : kColumns)
      for (const int chains : {1, 2})
        for (const int warpgroups : {1, 2, 3})
          if (chains == 1 || (columns <= 64 && warpgroups < 3))
            jobs.push_back(
                {.columns = columns, .registers = registers, .chains = chains, .warpgroups = warpgroups});
  return jobs;
}

std::vector<ProductJob> cardJobs() {
  return {{.columns = 128, .warpgroups = 2},
          {.columns = 256, .warpgroups = 2},
          {.columns = 128, .registers = true, .warpgroups = 2}};
}

double flopsOf(const ProductJob &job) { return 2.0 * kRows * job.columns * kInner * job.steps * job.warpgroups; }

unsigned sharedBytes(const ProductJob &job) {
  const int a = job.registers ? 0 : job.warpgroups * kRows;
  return static_cast<unsigned>(1024 + (a + job.columns) * kDepth * 2);
}

std::string productText(const ProductJob &job) {
  return "m64n" + std::to_string(job.columns) + "k16 " + (job.registers ? "RS" : "SS") +
         (job.chains > 1 ? ", 2 chains" : "") + ", " + std::to_string(job.warpgroups) + " warpgroups";
}

nlohmann::ordered_json productColumns(const ProductJob &job) {
  return {{"columns", job.columns},
          {"a", job.registers ? "registers" : "shared"},
          {"chains", job.chains},
          {"warpgroups", job.warpgroups}};
}

Status measureMma(MicroDevice &device, MicroReport &report) {
  Result<tools::Buffer> clocks = device.accelerator().allocate(device.multiprocessors() * sizeof(int64_t));
  if (!clocks)
    return clocks.status();
  for (const int warps : kMmaWarps) {
    // Blocks of one warp for each part of the multiprocessor, so that the count of warps is that of the block.
    int iterations = 4000;
    void *to = clocks->data();
    const MicroLaunch launch{.blocks = device.multiprocessors(), .threads = static_cast<unsigned>(warps) * 32};
    const double flops = static_cast<double>(kMmaFlops) * kMmaChains * iterations * warps;
    Result<std::vector<double>> shares = device.clocks(
        report.samples(), *clocks, launch.blocks,
        [&] { return device.launch(mmaSource(), launch, {&iterations, &to}); },
        [&](std::vector<int64_t> numbers) {
          std::nth_element(numbers.begin(), numbers.begin() + static_cast<long>(numbers.size() / 2), numbers.end());
          return 100 * flops / static_cast<double>(numbers[numbers.size() / 2]) / kPeakFlopsPerClock;
        });
    if (!shares)
      return shares.status();
    NSA_RETURN_IF_ERROR(report.add("product", "mma.sync m16n8k16, " + std::to_string(warps) + " warps", "% of peak",
                                   std::move(*shares), {{"warps", warps}}));
  }
  return Status::ok();
}

} // namespace

MicroSource productSource(const ProductJob &job) {
  return {"wgmma_rate.cu",
          {{"kColumns", job.columns},
           {"kInRegisters", job.registers},
           {"kChains", job.chains},
           {"kSteps", job.steps},
           {"kExponents", job.exponents},
           {"kOverlap", job.overlap}}};
}

Result<ProductRate> productRate(MicroDevice &device, int samples, const ProductJob &job, int groups) {
  const MicroSource source = productSource(job);
  if (const int spilled = device.spilledBytes(source))
    return Status::error(ErrorCode::kInternal, source.name() + ": " + std::to_string(spilled) +
                                                   " bytes of registers are in memory, which is not what is measured");
  Result<tools::Buffer> clocks = device.accelerator().allocate(device.multiprocessors() * sizeof(int64_t));
  if (!clocks)
    return clocks.status();
  const MicroLaunch launch{.blocks = device.multiprocessors(),
                           .threads = static_cast<unsigned>(job.warpgroups * kWarpgroupThreads),
                           .sharedBytes = sharedBytes(job)};
  void *to = clocks->data();
  Result<std::vector<double>> cycles = device.clocks(
      samples, *clocks, launch.blocks, [&] { return device.launch(source, launch, {&groups, &to}); },
      [](std::vector<int64_t> numbers) {
        std::nth_element(numbers.begin(), numbers.begin() + static_cast<long>(numbers.size() / 2), numbers.end());
        return static_cast<double>(numbers[numbers.size() / 2]);
      });
  if (!cycles)
    return cycles.status();
  ProductRate rate;
  for (const double count : *cycles) {
    rate.share.push_back(100 * flopsOf(job) * groups / count / kPeakFlopsPerClock);
    rate.exponents.push_back(static_cast<double>(job.exponents) * kWarpgroupThreads * job.warpgroups * groups / count);
  }
  return rate;
}

Result<std::vector<double>> cardRate(MicroDevice &device, int samples, const ProductJob &job) {
  Result<tools::Buffer> clocks = device.accelerator().allocate(device.multiprocessors() * sizeof(int64_t));
  if (!clocks)
    return clocks.status();
  const MicroLaunch launch{.blocks = device.multiprocessors(),
                           .threads = static_cast<unsigned>(job.warpgroups * kWarpgroupThreads),
                           .sharedBytes = sharedBytes(job)};
  void *to = clocks->data();
  int groups = kCardGroups;
  auto enqueue = [&] { return device.launch(productSource(job), launch, {&groups, &to}); };
  NSA_RETURN_IF_ERROR(device.time(20, enqueue).status()); // clocks fall within some tenths of a second
  Result<std::vector<double>> times = device.time(samples, enqueue);
  if (!times)
    return times.status();
  for (double &sample : *times)
    sample = flopsOf(job) * groups * launch.blocks / (sample * 1e-3) / 1e12;
  return times;
}

std::vector<MicroSource> productRateSources() {
  std::vector<MicroSource> sources{mmaSource()};
  for (const std::vector<ProductJob> &jobs : {rateJobs(), cardJobs()})
    for (const ProductJob &job : jobs)
      sources.push_back(productSource(job));
  return sources;
}

Status measureProductRates(MicroDevice &device, MicroReport &report) {
  for (const ProductJob &job : rateJobs()) {
    const int groups = kClocksPerSample / (job.columns / 2 * job.steps * job.warpgroups);
    Result<ProductRate> rate = productRate(device, report.samples(), job, groups);
    if (!rate)
      return rate.status();
    NSA_RETURN_IF_ERROR(
        report.add("product", productText(job), "% of peak", std::move(rate->share), productColumns(job)));
  }
  NSA_RETURN_IF_ERROR(measureMma(device, report));
  for (const ProductJob &job : cardJobs()) {
    Result<std::vector<double>> rates = cardRate(device, report.samples(), job);
    if (!rates)
      return rates.status();
    NSA_RETURN_IF_ERROR(
        report.add("product", productText(job) + ", whole card", "TFLOP/s", std::move(*rates), productColumns(job)));
  }
  return Status::ok();
}

} // namespace nsa::bench
