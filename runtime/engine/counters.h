// What an engine has done since it opened (nsa_stats in nsa/nsa.h).
// Thread-safety: counters are raised by any thread without order between them.
#pragma once

#include "runtime/engine/thread_shard.h"

#include <atomic>
#include <cstdint>

namespace nsa {

struct Counters {
  ShardedCounter plansFromMemory;
  ShardedCounter runs;
  std::atomic<uint64_t> plansFromDatabase{0};
  std::atomic<uint64_t> plansCompiled{0};
  std::atomic<uint64_t> plansFailed{0};
  std::atomic<uint64_t> kernelsCompiled{0};
  std::atomic<uint64_t> kernelsMeasured{0};
  std::atomic<uint64_t> kernelsRejected{0};
  std::atomic<uint64_t> kernelsLoaded{0};

  static void raise(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
};

} // namespace nsa
