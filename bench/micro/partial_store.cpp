// Partial results on their way to memory: stores to a place of their own against additions to a common one.
#include "bench/micro/micro_group.h"

namespace nsa::bench {
namespace {

constexpr int kSlotRows = 16, kSlotColumns = 128;
constexpr int64_t kSmallBytes = 16 << 20, kLargeBf16Bytes = int64_t{1} << 30;
constexpr int64_t kPayload = int64_t{1} << 30; // of a sample, at least
constexpr unsigned kBlocksPerMultiprocessor = 4, kThreads = 128;
constexpr unsigned kSharedBytes = 8192 + 128;

struct StoreJob {
  const char *text;
  int mode; // the kernel's
  int elementBytes;
};
constexpr StoreJob kStoreJobs[] = {
    {"stores of 16 bytes, bf16", 0, 2}, {"stores of 16 bytes, fp32", 0, 4}, {"bulk store, bf16", 1, 2},
    {"bulk store, fp32", 1, 4},         {"bulk add, bf16", 3, 2},           {"bulk add, fp32", 2, 4},
    {"red.add.v4, fp32", 4, 4},
};

int placeBytesOf(const StoreJob &job) { return kSlotRows * kSlotColumns * job.elementBytes; }

MicroSource storeSource(const StoreJob &job) { return {"partial_store.cu", {{"kMode", job.mode}}}; }

// Terabytes per second into places of `bytes` together.
Result<std::vector<double>> sampleStores(MicroDevice &device, int samples, const StoreJob &job, int64_t bytes) {
  NSA_ASSIGN_OR_RETURN(tools::Buffer places, device.accelerator().allocate(static_cast<size_t>(bytes)));
  NSA_RETURN_IF_ERROR(device.accelerator().fill(places.data(), 0, places.size()));
  int placeBytes = placeBytesOf(job);
  uint32_t mask = static_cast<uint32_t>(bytes / placeBytes) - 1;
  uint32_t rounds = static_cast<uint32_t>(std::max<int64_t>(kPayload / bytes, 1));
  void *to = places.data();
  const MicroLaunch launch{
      .blocks = device.multiprocessors() * kBlocksPerMultiprocessor, .threads = kThreads, .sharedBytes = kSharedBytes};
  return converted(
      device.time(samples, [&] { return device.launch(storeSource(job), launch, {&to, &placeBytes, &mask, &rounds}); }),
      [&](double milliseconds) { return static_cast<double>(bytes) * rounds / (milliseconds * 1e-3) / 1e12; });
}

} // namespace

std::vector<MicroJob> partialStoreJobs() {
  std::vector<MicroJob> jobs;
  for (const StoreJob &job : kStoreJobs)
    for (const int64_t bytes : {kSmallBytes, kLargeBf16Bytes * job.elementBytes / 2})
      jobs.push_back({std::string(job.text) + ", places of " + std::to_string(bytes >> 20) + " MB",
                      "TB/s",
                      storeSource(job),
                      {{"footprint_mb", bytes >> 20}, {"place_bytes", placeBytesOf(job)}},
                      [=](MicroDevice &device, int samples) { return sampleStores(device, samples, job, bytes); }});
  return jobs;
}

} // namespace nsa::bench
