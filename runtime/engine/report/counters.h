// Counts what an engine has done since it opened (nsa_stats in nsa/nsa.h).
// Thread-safety: any thread may raise a counter, and another thread may see changes of two counters in any order.
#pragma once

#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/report/thread_shard.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace nsa {

struct PlanTimes;

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
  // How many kernels were used as fallbacks, with one counter for each FallbackStep. The counter of the step kCpu
  // counts engines instead of kernels: it is 1 if the engine runs on the CPU because it could not open a GPU.
  std::array<std::atomic<uint64_t>, kFallbackSteps> fallbacks{};
  std::atomic<uint64_t> backgroundPending{0}; // goes down when a tuning ends
  std::atomic<uint64_t> backgroundDone{0};
  std::atomic<uint64_t> backgroundFailed{0};
  std::atomic<uint64_t> logDropped{0};
  // The fields of PlanTimes, each summed over all plans.
  std::atomic<double> lookupMs{0}, renderMs{0}, compileMs{0}, tuneMs{0}, loadMs{0};

  static void raise(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
  void add(const PlanTimes &times);
  void countFallback(FallbackStep step) { raise(fallbacks[static_cast<size_t>(step)]); }
  uint64_t fallbacksOf(FallbackStep step) const { return fallbacks[static_cast<size_t>(step)]; }
};

} // namespace nsa
