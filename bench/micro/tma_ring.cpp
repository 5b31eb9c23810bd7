#include "bench/micro/tma_ring.h"

namespace nsa::bench {
namespace {

constexpr int kBoxColumns = 64, kBoxRowBytes = kBoxColumns * 2;
constexpr int kMatrixColumns = 128, kMatrixRowBytes = kMatrixColumns * 2;
constexpr int64_t kBytesPerBlock = 20 << 20; // 0.3 ms at 9 TB/s
constexpr int kMostStages = 64;              // barriers lie in the first KB of shared memory, tiles after it
constexpr int kThreads = 64;                 // a warp that copies, one that waits

const char *orderName(BoxOrder order) {
  return order == BoxOrder::kScattered ? "scattered" : order == BoxOrder::kLinear ? "linear" : "same";
}

std::string ringText(const RingJob &job) {
  return std::string(orderName(job.order)) + (job.multicast ? ", multicast to 2" : "") + ", " +
         std::to_string(job.footprintMb) + " MB, box " + std::to_string(job.boxRows * kBoxRowBytes / 1024) + " KB, " +
         std::to_string(job.inFlightKb) + " KB in flight";
}

std::vector<RingJob> measured() {
  std::vector<RingJob> jobs;
  for (const bool multicast : {false, true}) {
    const RingJob base{.multicast = multicast};
    auto add = [&](auto change) {
      RingJob job = base;
      change(job);
      jobs.push_back(job);
    };
    for (const int footprint : {2, 8, 16, 24, 32, 40, 48, 60, 80, 120})
      add([&](RingJob &job) { job.footprintMb = footprint; });
    for (const int rows : {32, 64, 256})
      add([&](RingJob &job) {
        job.boxRows = rows;
        job.stageKb = rows * kBoxRowBytes / 1024;
      });
    for (const int inFlight : {32, 64, 96, 192})
      add([&](RingJob &job) { job.inFlightKb = inFlight; });
    for (const BoxOrder order : {BoxOrder::kLinear, BoxOrder::kSame})
      add([&](RingJob &job) { job.order = order; });
    add([](RingJob &job) {
      job.order = BoxOrder::kSame;
      job.footprintMb = 8;
    });
  }
  return jobs;
}

nlohmann::ordered_json ringColumns(const RingJob &job) {
  return {{"footprint_mb", job.footprintMb},    {"box_rows", job.boxRows},
          {"in_flight_kb", job.inFlightKb},     {"order", orderName(job.order)},
          {"multicast", job.multicast ? 2 : 1}, {"issuers", job.issuers}};
}

// The terabytes per second that arrive in shared memory.
Result<std::vector<double>> ringRate(MicroDevice &device, int samples, const RingJob &job) {
  const int64_t footprint = static_cast<int64_t>(job.footprintMb) << 20;
  const int stageBytes = job.stageKb * 1024, boxBytes = job.boxRows * kBoxRowBytes;
  int stages = job.inFlightKb / job.stageKb, stageBoxes = stageBytes / boxBytes;
  int boxes = static_cast<int>(footprint / boxBytes), boxRows = job.boxRows;
  if (stages < 1 || stages > kMostStages || stageBoxes < 1)
    return Status::error(ErrorCode::kInternal, ringText(job) + ": not a ring that fits");
  NSA_ASSIGN_OR_RETURN(tools::Buffer memory, device.accelerator().allocate(static_cast<size_t>(footprint)));
  NSA_RETURN_IF_ERROR(device.accelerator().fill(memory.data(), 0x3c, memory.size()));
  // With multicast each of the two blocks starts half of every box.
  const unsigned cluster = job.multicast ? 2 : 1;
  NSA_ASSIGN_OR_RETURN(cuda::TensorMap map,
                       device.tensorMap({.data = memory.data(),
                                         .columns = kMatrixColumns,
                                         .rows = static_cast<uint64_t>(footprint / kMatrixRowBytes),
                                         .rowBytes = kMatrixRowBytes},
                                        kBoxColumns, static_cast<unsigned>(boxRows) / cluster));
  int iterations = static_cast<int>(kBytesPerBlock / stageBytes), order = static_cast<int>(job.order);
  const MicroLaunch launch{.blocks = device.multiprocessors(),
                           .threads = kThreads,
                           .sharedBytes = static_cast<unsigned>(2048 + stages * stageBytes),
                           .cluster = cluster};
  const MicroSource source = ringSource(job);
  const double bytes = static_cast<double>(stageBytes) * iterations * launch.blocks;
  return converted(device.time(samples,
                               [&] {
                                 return device.launch(
                                     source, launch,
                                     {&map, &boxes, &boxRows, &stageBoxes, &stages, &iterations, &order});
                               }),
                   [&](double milliseconds) { return bytes / (milliseconds * 1e-3) / 1e12; });
}

} // namespace

MicroSource ringSource(const RingJob &job) {
  return {"tma_ring.cu",
          {{"kCluster", job.multicast ? 2 : 1},
           {"kIssuers", job.issuers},
           {"kScattered", job.order == BoxOrder::kScattered}}};
}

MicroJob ringMicroJob(const std::string &measure, const RingJob &job) {
  return {measure, "TB/s", ringSource(job), ringColumns(job),
          [job](MicroDevice &device, int samples) { return ringRate(device, samples, job); }};
}

std::vector<MicroJob> tmaRingJobs() {
  std::vector<MicroJob> jobs;
  for (const RingJob &job : measured())
    jobs.push_back(ringMicroJob(ringText(job), job));
  return jobs;
}

} // namespace nsa::bench
