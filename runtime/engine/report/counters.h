// Counts what an engine has done since it opened (nsa_stats in nsa/nsa.h).
// Thread-safety: any thread may raise a counter, and another thread may see changes of two counters in any order.
#pragma once

#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/report/thread_shard.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace nsa {

struct Counters {
  using Count = std::atomic<uint64_t>;
  using Milliseconds = std::atomic<double>;
#define NSA_STAT_COUNTER(type, member, name) type member{};
#include "runtime/model/info_fields.def"
  // How many kernels were used as fallbacks, with one counter for each FallbackStep. The counter of the step kCpu
  // counts engines instead of kernels: it is 1 if the engine runs on the CPU because it could not open a GPU.
  std::array<Count, kFallbackSteps> fallbacks{};

  static void raise(Count &counter, uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }
  void add(const PlanTimes &times) {
    lookupMs += times.lookupMs;
    renderMs += times.renderMs;
    compileMs += times.compileMs;
    tuneMs += times.tuneMs;
    loadMs += times.loadMs;
  }
  void countFallback(FallbackStep step) { raise(fallbacks[static_cast<size_t>(step)]); }
  uint64_t fallbacksOf(FallbackStep step) const { return fallbacks[static_cast<size_t>(step)]; }
};

} // namespace nsa
