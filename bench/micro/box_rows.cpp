// Boxes of few rows: whether they make the tile that one box makes, and how fast they are.
#include "bench/micro/tma_ring.h"

namespace nsa::bench {
namespace {

constexpr int kTileRows = 64, kTileColumns = 64, kTileBytes = kTileRows * kTileColumns * 2;
constexpr int kMatrixRows = 4096;

MicroSource layoutSource() { return {"box_layout.cu", {}}; }

// Where the box that fills rows `box * rows` and on of the tile begins in memory.
int sourceRow(int box, int rows) { return (box * 1237 + 411) * rows % (kMatrixRows - kTileRows); }

// Bytes of a tile made of boxes of so many rows that are not where the swizzle of one box would have them.
Result<std::vector<double>> misplacedBytes(MicroDevice &device, int rows) {
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
  return std::vector{static_cast<double>(misplaced)};
}

} // namespace

std::vector<MicroJob> boxRowJobs() {
  std::vector<MicroJob> jobs;
  for (const int rows : {64, 16, 8, 4, 2, 1})
    jobs.push_back({"tile of 64 rows from boxes of " + std::to_string(rows) + ": misplaced",
                    "bytes",
                    layoutSource(),
                    {{"box_rows", rows}},
                    [rows](MicroDevice &device, int) { return misplacedBytes(device, rows); }});
  for (const int issuers : {1, 32})
    for (const int rows : {64, 16, 8, 4})
      jobs.push_back(ringMicroJob("boxes of " + std::to_string(rows) + " rows, started by " +
                                      (issuers == 1 ? "one thread" : "32 lanes"),
                                  {.boxRows = rows, .stageKb = 8, .inFlightKb = 96, .issuers = issuers}));
  return jobs;
}

} // namespace nsa::bench
