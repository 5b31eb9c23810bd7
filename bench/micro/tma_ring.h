// The microbenchmark of TMA loads (kernels/tma_ring.cu): a kernel loads TMA boxes into a ring of buffers in shared
// memory. This header has the parameters of the ring and measures the bytes per second that arrive in shared memory.
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
// The job with the unit TB/s: the bytes that arrive in shared memory.
MicroJob ringMicroJob(const std::string &measure, const RingJob &job);

} // namespace nsa::bench
