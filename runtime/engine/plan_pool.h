// The plans that callers hold, in memory that is used again, and with them the answer to "may the engine go?": it may
// when its handle is destroyed and no plan is held. Each shard has its own lock and count, so that threads which make
// and destroy plans at once do not meet; a recycled plan keeps its status word, so that neither asks the driver.
// Ownership: owns the plans; borrows the device. Thread-safety: all functions may be called by many threads at once.
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

  // A plan with a status word. Allocates nothing while a plan that was given back is at hand.
  Result<Plan *> take();
  // True for the last plan of a closed pool.
  bool giveBack(Plan *plan);
  // No plan is taken from now on. True when none is held. Of `close` and all that follow it one call says true, and no
  // other touches the pool any more: whoever gets it ends the pool.
  bool close();

private:
  struct alignas(kShardAlignment) Shard {
    std::mutex mutex;
    Plan *free = nullptr;
    size_t held = 0; // taken from this shard, not given back
    bool closed = false;
  };
  Plan *takeFrom(Shard &shard);
  Result<Plan *> make();

  Device &device;
  std::array<Shard, kThreadShards> shards;
  std::atomic<size_t> heldWhenClosed{0}; // and not given back since; `close` itself is one while it works
};

} // namespace nsa
