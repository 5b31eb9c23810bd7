// The parameters of the ring of TMA boxes (kernels/tma_ring.cu), and the bytes per second that it delivers.
// Thread-safety: one thread.
#pragma once

#include "bench/micro/micro_group.h"

namespace nsa::bench {

// The order in which thread blocks read the TMA boxes. The numeric values of BoxOrder are the numbers that
// kernels/tma_ring.cu expects.
enum class BoxOrder : int { kScattered = 0, kLinear = 1, kSame = 2 };

struct RingJob {
  int footprintMb = 32;
  int boxRows = 128; // each of 128 bytes
  int stageKb = 16;  // for which a single barrier waits
  int inFlightKb = 128;
  BoxOrder order = BoxOrder::kScattered;
  bool multicast = false; // two blocks of a cluster share every box
  int issuers = 1;        // lanes that start boxes: 1 or 32
};

MicroSource ringSource(const RingJob &job);
// Returns the terabytes per second that arrive in shared memory. `memory` has the size of the job's footprint.
Result<std::vector<double>> ringRate(MicroDevice &device, int samples, const tools::Buffer &memory, const RingJob &job);
// The job's parameters as columns of a result row.
nlohmann::ordered_json ringColumns(const RingJob &job);

} // namespace nsa::bench
