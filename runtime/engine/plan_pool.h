// The pool of the plans that callers hold. The memory of a plan that was given back is used for the next plan. The pool
// also knows when the engine may end: when the engine's handle is destroyed and no plan is held.
// Each shard of the pool has its own lock and count, so that threads which make and destroy plans at once do not
// disturb each other. A recycled plan keeps its status word, so that taking and giving back need no driver call.
// Ownership: the pool owns the plans and borrows the device.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/plan.h"
#include "runtime/engine/thread_shard.h"

#include <array>
#include <mutex>

namespace nsa {

class PlanPool {
public:
  explicit PlanPool(Device &device) : device(device) {}
  ~PlanPool();
  PlanPool(const PlanPool &) = delete;
  PlanPool &operator=(const PlanPool &) = delete;

  // Returns a plan with a status word. `take` allocates nothing while there is a plan that was given back.
  Result<Plan *> take();
  // Takes a plan back. Returns true for the last plan of a closed pool.
  bool giveBack(Plan *plan);
  // Closes the pool: no plan may be taken from a closed pool. `close` returns true when no plan is held. Of `close` and
  // all later calls of giveBack exactly one call returns true, and after it no call touches the pool. The caller that
  // gets true from `close` or giveBack must end the pool.
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
