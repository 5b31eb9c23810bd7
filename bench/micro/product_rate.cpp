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
Result<std::vector<double>> shares(Result<std::vector<double>> clocks, double flops) {
  return converted(std::move(clocks), [&](double sample) { return 100 * flops / sample / kPeakFlopsPerClock; });
}

MicroJob mmaJob(int warps) {
  return {"mma.sync m16n8k16, " + std::to_string(warps) + " warps",
          "% of peak",
          mmaSource(),
          {{"warps", warps}},
          [warps](MicroDevice &device, int samples) {
            const int iterations = 4000;
            return shares(
                blockClocks(device, samples, mmaSource(),
                            {.blocks = device.multiprocessors(), .threads = static_cast<unsigned>(warps) * 32},
                            iterations),
                static_cast<double>(kMmaFlops) * kMmaChains * iterations * warps);
          }};
}

// The whole card by the time that passes, TFLOP/s, after it has run warm.
Result<std::vector<double>> cardRate(MicroDevice &device, int samples, const ProductJob &job) {
  NSA_ASSIGN_OR_RETURN(tools::Buffer clocks, device.accelerator().allocate(device.multiprocessors() * sizeof(int64_t)));
  const MicroLaunch launch = launchOf(device, job);
  void *to = clocks.data();
  int groups = kCardClocks / (job.columns / 2 * job.steps * job.warpgroups);
  auto enqueue = [&] { return device.launch(productSource(job), launch, {&groups, &to}); };
  NSA_RETURN_IF_ERROR(device.time(kCardWarmUps, enqueue).status());
  return converted(device.time(samples, enqueue), [&](double milliseconds) {
    return flopsOf(job) * groups * launch.blocks / (milliseconds * 1e-3) / 1e12;
  });
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
      samples, clocks, launch.blocks, [&] { return device.launch(source, launch, {&repetitions, &to}); }, medianClocks);
}

std::vector<MicroJob> productRateJobs() {
  std::vector<MicroJob> jobs;
  for (const ProductJob &job : rateJobs())
    jobs.push_back({productText(job), "% of peak", productSource(job), productColumns(job),
                    [job](MicroDevice &device, int samples) {
                      const int groups = kClocksPerSample / (job.columns / 2 * job.steps * job.warpgroups);
                      return shares(blockClocks(device, samples, productSource(job), launchOf(device, job), groups),
                                    flopsOf(job) * groups);
                    }});
  for (const int warps : {4, 8, 16})
    jobs.push_back(mmaJob(warps));
  for (const ProductJob &job : cardJobs())
    jobs.push_back({productText(job) + ", whole card", "TFLOP/s", productSource(job), productColumns(job),
                    [job](MicroDevice &device, int samples) { return cardRate(device, samples, job); }});
  return jobs;
}

} // namespace nsa::bench
