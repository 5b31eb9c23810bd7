// Boxes of few rows: whether they make the tile that one box makes, and how fast they are.
#include "bench/micro/tma_ring.h"

#include <cstring>

namespace nsa::bench {
namespace {

constexpr int kTileRows = 64, kTileColumns = 64, kTileBytes = kTileRows * kTileColumns * 2;
constexpr int kMatrixRows = 4096;
constexpr int kLayoutRows[] = {64, 16, 8, 4, 2, 1};

MicroSource layoutSource() { return {"box_layout.cu", {}}; }

std::vector<RingJob> rowJobs() {
  std::vector<RingJob> jobs;
  for (const int issuers : {1, 32})
    for (const int rows : {64, 16, 8, 4})
      jobs.push_back({.boxRows = rows, .stageKb = 8, .inFlightKb = 96, .issuers = issuers});
  return jobs;
}

// Where the box that fills rows `box * rows` and on of the tile begins in memory.
int sourceRow(int box, int rows) { return (box * 1237 + 411) * rows % (kMatrixRows - kTileRows); }

// Bytes of a tile made of boxes of so many rows that are not where the swizzle of one box would have them.
Result<int> misplacedBytes(MicroDevice &device, int rows) {
  tools::Accelerator &accelerator = device.accelerator();
  std::vector<uint16_t> matrix(static_cast<size_t>(kMatrixRows) * kTileColumns);
  for (size_t i = 0; i < matrix.size(); ++i)
    matrix[i] = static_cast<uint16_t>(i * 40503u + (i >> 16));
  NSA_ASSIGN_OR_RETURN(tools::Buffer memory, accelerator.allocate(matrix.size() * 2));
  NSA_ASSIGN_OR_RETURN(tools::Buffer tile, accelerator.allocate(kTileBytes));
  NSA_RETURN_IF_ERROR(accelerator.upload(memory.data(), matrix.data(), matrix.size() * 2));
  std::vector<int32_t> places;
  for (int box = 0; box < kTileRows / rows; ++box)
    places.push_back(sourceRow(box, rows));
  NSA_ASSIGN_OR_RETURN(tools::Buffer placeBuffer, accelerator.allocate(places.size() * sizeof(int32_t)));
  NSA_RETURN_IF_ERROR(accelerator.upload(placeBuffer.data(), places.data(), places.size() * sizeof(int32_t)));
  NSA_RETURN_IF_ERROR(accelerator.fill(tile.data(), 0xff, kTileBytes));
  NSA_ASSIGN_OR_RETURN(
      cuda::TensorMap map,
      device.tensorMap(
          {.data = memory.data(), .columns = kTileColumns, .rows = kMatrixRows, .rowBytes = kTileColumns * 2},
          kTileColumns, static_cast<unsigned>(rows)));
  void *from = placeBuffer.data(), *to = tile.data();
  NSA_RETURN_IF_ERROR(
      device.launch(layoutSource(), {.threads = 128, .sharedBytes = 2048 + kTileBytes}, {&map, &from, &rows, &to}));
  std::vector<uint16_t> found(kTileBytes / 2);
  NSA_RETURN_IF_ERROR(accelerator.download(found.data(), tile.data(), kTileBytes));
  int misplaced = 0;
  for (int row = 0; row < kTileRows; ++row)
    for (int column = 0; column < kTileColumns; ++column) {
      // 16-byte pieces of a row of 128 bytes change places by the row's number (PTX ISA, swizzling modes, 128 bytes).
      const int piece = (column / 8) ^ (row % 8), at = row * kTileColumns + piece * 8 + column % 8;
      const int from = sourceRow(row / rows, rows) + row % rows;
      if (found[static_cast<size_t>(at)] !=
          matrix[static_cast<size_t>(from) * kTileColumns + static_cast<size_t>(column)])
        misplaced += 2;
    }
  return misplaced;
}

} // namespace

std::vector<MicroSource> boxRowSources() {
  std::vector<MicroSource> sources{layoutSource()};
  for (const RingJob &job : rowJobs())
    sources.push_back(ringSource(job));
  return sources;
}

Status measureBoxRows(MicroDevice &device, MicroReport &report) {
  for (const int rows : kLayoutRows) {
    NSA_ASSIGN_OR_RETURN(int misplaced, misplacedBytes(device, rows));
    NSA_RETURN_IF_ERROR(report.add("box", "tile of 64 rows from boxes of " + std::to_string(rows) + ": misplaced",
                                   "bytes", {static_cast<double>(misplaced)}, {{"box_rows", rows}}));
  }
  NSA_ASSIGN_OR_RETURN(tools::Buffer memory, device.accelerator().allocate(32 << 20));
  NSA_RETURN_IF_ERROR(device.accelerator().fill(memory.data(), 0x3c, memory.size()));
  for (const RingJob &job : rowJobs()) {
    NSA_ASSIGN_OR_RETURN(std::vector<double> rates, ringRate(device, report.samples(), memory, job));
    NSA_RETURN_IF_ERROR(report.add("box",
                                   "boxes of " + std::to_string(job.boxRows) + " rows, started by " +
                                       (job.issuers == 1 ? "one thread" : "32 lanes"),
                                   "TB/s", std::move(rates), ringColumns(job)));
  }
  return Status::ok();
}

} // namespace nsa::bench
