#include "runtime/engine/plan_pool.h"

#include "runtime/base/device_status.h"
#include "runtime/engine/graph/comparison.h"

#include <algorithm>

namespace nsa {

PlanPool::~PlanPool() {
  for (Shard &shard : shards)
    while (Plan *plan = takeFrom(shard)) {
      if (plan->statusWord)
        device.releaseStatusWord(plan->statusWord);
      delete plan;
    }
}

Plan *PlanPool::takeFrom(Shard &shard) {
  Plan *plan = shard.free;
  if (plan)
    shard.free = plan->next;
  return plan;
}

Result<Plan *> PlanPool::take() {
  size_t number = threadShard();
  Shard &own = shards[number];
  {
    std::lock_guard lock(own.mutex);
    if (Plan *plan = takeFrom(own)) {
      ++own.held;
      return plan;
    }
  }
  Result<Plan *> plan = make();
  if (!plan)
    return plan;
  (*plan)->shard = number;
  std::lock_guard lock(own.mutex);
  ++own.held;
  return plan;
}

Result<Plan *> PlanPool::make() {
  // What another thread gave back first: a new plan may need memory of the device, which a capture forbids.
  for (Shard &shard : shards) {
    std::lock_guard lock(shard.mutex);
    if (Plan *plan = takeFrom(shard))
      return plan;
  }
  std::unique_ptr<Plan> plan(new Plan);
  NSA_ASSIGN_OR_RETURN(plan->statusWord, device.acquireStatusWord());
  return plan.release();
}

bool PlanPool::giveBack(Plan *plan) {
  delete plan->description.exchange(nullptr, std::memory_order_relaxed);
  plan->comparison.reset();
  // Cleared before another caller gets it, else that plan would report this one's error.
  if (plan->statusWord)
    std::fill_n(plan->statusWord, kDeviceStatusWords, 0);
  Shard &shard = shards[plan->shard];
  bool closed;
  {
    std::lock_guard lock(shard.mutex);
    plan->next = shard.free;
    shard.free = plan;
    --shard.held;
    closed = shard.closed;
  }
  return closed && heldWhenClosed.fetch_sub(1) == 1;
}

bool PlanPool::close() {
  {
    // All shards at once: the sum must be of one moment.
    std::array<std::unique_lock<std::mutex>, kThreadShards> locks;
    size_t held = 0;
    for (size_t i = 0; i < kThreadShards; ++i) {
      locks[i] = std::unique_lock(shards[i].mutex);
      held += shards[i].held;
      shards[i].closed = true;
    }
    // This call counts as one more: the shards that are open again must not let the others' locks be taken from it.
    heldWhenClosed.store(held + 1);
  }
  return heldWhenClosed.fetch_sub(1) == 1;
}

} // namespace nsa
