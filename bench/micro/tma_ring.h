// What the ring of TMA boxes (kernels/tma_ring.cu) is asked for, and how many bytes a second it brings.
// Thread-safety: one thread.
#pragma once

#include "bench/micro/micro_group.h"

namespace nsa::bench {

// In what order the blocks walk through the boxes; the numbers are the kernel's.
enum class BoxOrder : int { kScattered = 0, kLinear = 1, kSame = 2 };

struct RingJob {
  int footprintMb = 32;
  int boxRows = 128; // of 128 bytes
  int stageKb = 16;  // bytes that one barrier waits for
  int inFlightKb = 128;
  BoxOrder order = BoxOrder::kScattered;
  bool multicast = false; // two blocks of a cluster share every box
  int issuers = 1;        // lanes that start boxes: 1 or 32
};

MicroSource ringSource(const RingJob &job);
// Terabytes a second that arrive in shared memory. `memory` holds the footprint.
Result<std::vector<double>> ringRate(MicroDevice &device, int samples, const tools::Buffer &memory, const RingJob &job);
// The job's numbers as columns of the report.
nlohmann::ordered_json ringColumns(const RingJob &job);

} // namespace nsa::bench
