#include "bench/micro/product_rate.h"

#include <algorithm>

namespace nsa::bench {
namespace {

constexpr int kRows = 64, kInner = 16, kWarpgroupThreads = 128;
constexpr int kDepth = 128; // of A and B in shared memory
constexpr int kClocksPerSample = 400'000;
constexpr int kCardClocks = 15'000'000; // some 10 ms
constexpr int kCardWarmUps = 30;        // clocks fall within some tenths of a second

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
          if (chains == 1 || (columns <= 64 && warpgroups < 3)) {
            const ProductJob job{
                .columns = columns, .registers = registers, .chains = chains, .warpgroups = warpgroups};
            if (warpgroups < 3 || !isWide(job))
              jobs.push_back(job);
          }
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
  return static_cast<unsigned>(2048 + (a + job.columns) * kDepth * 2);
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

MicroLaunch launchOf(const MicroDevice &device, const ProductJob &job) {
  return {.blocks = device.multiprocessors(),
          .threads = static_cast<unsigned>(job.warpgroups * kWarpgroupThreads),
          .sharedBytes = sharedBytes(job)};
}

// In percent of what the tensor cores can do.
std::vector<double> shares(std::vector<double> clocks, double flops) {
  for (double &sample : clocks)
    sample = 100 * flops / sample / kPeakFlopsPerClock;
  return clocks;
}

Status measureMma(MicroDevice &device, MicroReport &report) {
  for (const int warps : kMmaWarps) {
    const int iterations = 4000;
    NSA_ASSIGN_OR_RETURN(std::vector<double> clocks,
                         blockClocks(device, report.samples(), mmaSource(),
                                     {.blocks = device.multiprocessors(), .threads = static_cast<unsigned>(warps) * 32},
                                     iterations));
    const double flops = static_cast<double>(kMmaFlops) * kMmaChains * iterations * warps;
    NSA_RETURN_IF_ERROR(report.add("product", "mma.sync m16n8k16, " + std::to_string(warps) + " warps", "% of peak",
                                   shares(std::move(clocks), flops), {{"warps", warps}}));
  }
  return Status::ok();
}

// The whole card by the time that passes, TFLOP/s, after it has run warm.
Result<std::vector<double>> cardRate(MicroDevice &device, int samples, const ProductJob &job) {
  NSA_ASSIGN_OR_RETURN(tools::Buffer clocks, device.accelerator().allocate(device.multiprocessors() * sizeof(int64_t)));
  const MicroLaunch launch = launchOf(device, job);
  void *to = clocks.data();
  int groups = kCardClocks / (job.columns / 2 * job.steps * job.warpgroups);
  auto enqueue = [&] { return device.launch(productSource(job), launch, {&groups, &to}); };
  NSA_RETURN_IF_ERROR(device.time(kCardWarmUps, enqueue).status());
  Result<std::vector<double>> times = device.time(samples, enqueue);
  if (!times)
    return times.status();
  for (double &sample : *times)
    sample = flopsOf(job) * groups * launch.blocks / (sample * 1e-3) / 1e12;
  return times;
}

} // namespace

bool isWide(const ProductJob &job) { return job.columns == 256 && job.registers; }

MicroSource productSource(const ProductJob &job) {
  return {"wgmma_rate.cu",
          {{"kColumns", job.columns},
           {"kInRegisters", job.registers},
           {"kChains", job.chains},
           {"kSteps", job.steps},
           {"kMostThreads", (isWide(job) ? 2 : 3) * kWarpgroupThreads}}};
}

Result<std::vector<double>> blockClocks(MicroDevice &device, int samples, const MicroSource &source,
                                        const MicroLaunch &launch, int repetitions) {
  if (const int spilled = device.spilledBytes(source))
    return Status::error(ErrorCode::kInternal, source.name() + ": " + std::to_string(spilled) +
                                                   " bytes of registers are in memory, which is not what is measured");
  NSA_ASSIGN_OR_RETURN(tools::Buffer clocks, device.accelerator().allocate(launch.blocks * sizeof(int64_t)));
  void *to = clocks.data();
  return device.clocks(
      samples, clocks, launch.blocks, [&] { return device.launch(source, launch, {&repetitions, &to}); },
      [](std::vector<int64_t> numbers) {
        std::nth_element(numbers.begin(), numbers.begin() + static_cast<long>(numbers.size() / 2), numbers.end());
        return static_cast<double>(numbers[numbers.size() / 2]);
      });
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
    NSA_ASSIGN_OR_RETURN(std::vector<double> clocks,
                         blockClocks(device, report.samples(), productSource(job), launchOf(device, job), groups));
    NSA_RETURN_IF_ERROR(report.add("product", productText(job), "% of peak",
                                   shares(std::move(clocks), flopsOf(job) * groups), productColumns(job)));
  }
  NSA_RETURN_IF_ERROR(measureMma(device, report));
  for (const ProductJob &job : cardJobs()) {
    NSA_ASSIGN_OR_RETURN(std::vector<double> rates, cardRate(device, report.samples(), job));
    NSA_RETURN_IF_ERROR(
        report.add("product", productText(job) + ", whole card", "TFLOP/s", std::move(rates), productColumns(job)));
  }
  return Status::ok();
}

} // namespace nsa::bench
