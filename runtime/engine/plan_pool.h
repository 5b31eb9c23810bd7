// Allocates the plans that callers hold, and uses the memory of a returned plan for the next plan. The pool also counts
// the plans that callers hold, because an engine may only be destroyed when its handle is released and no caller holds
// a plan.
// Each shard of the pool has its own lock and count, so that threads which make and destroy plans at once do not
// disturb each other. A recycled plan keeps its status word, so that neither `take` nor giveBack calls the driver.
// Ownership: the pool owns the plans and borrows the device.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/plan.h"
#include "runtime/engine/report/thread_shard.h"

#include <array>
#include <mutex>

namespace nsa {

class PlanPool {
public:
  explicit PlanPool(Device &device) : device(device) {}
  ~PlanPool();
  PlanPool(const PlanPool &) = delete;
  PlanPool &operator=(const PlanPool &) = delete;

  // Returns a plan with a status word. `take` allocates nothing if a returned plan can be used again.
  Result<Plan *> take();
  // Returns a plan to the pool. The result is true if the pool is closed and `plan` was the last plan that a caller
  // held.
  bool giveBack(Plan *plan);
  // Closes the pool: no plan may be taken from a closed pool. If no caller holds a plan, `close` returns true.
  // Otherwise `close` returns false, and later the `giveBack` of the last held plan returns true. The caller to which
  // `close` or `giveBack` returns true must destroy the pool. When `close` or `giveBack` returns true, no other thread
  // uses the pool.
  bool close();

private:
  struct alignas(kShardAlignment) Shard {
    std::mutex mutex;
    Plan *free = nullptr;
    size_t held = 0; // taken from this shard and not given back
    bool closed = false;
  };
  Plan *takeFrom(Shard &shard);
  Result<Plan *> make();

  Device &device;
  std::array<Shard, kThreadShards> shards;
  std::atomic<size_t> heldWhenClosed{
      0}; // plans held at `close` and not given back since; `close` counts as one while it works
};

} // namespace nsa
