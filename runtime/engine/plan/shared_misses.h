// The plans that threads of this process are making. Threads that miss the same plan share one future: the first thread
// makes the plan, and the other threads wait for its result. Threads that miss different plans do not wait for each
// other.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/graph/plan_key.h"

#include <functional>
#include <future>
#include <mutex>
#include <unordered_map>

namespace nsa {

struct PlanCore;

class SharedMisses {
public:
  using Made = Result<const PlanCore *>;

  // Calls `make`, unless another thread is in a call of `once` with the same key. In that case `once` waits for the
  // other thread and returns its result, or throws its exception. `make` must first look for the plan in memory,
  // because another thread may have made it just before this call. The result of `make` must outlive all callers.
  Made once(const PlanKey &key, const std::function<Made()> &make) {
    std::packaged_task<Made()> task(make);
    std::shared_future<Made> result = task.get_future().share();
    std::unique_lock lock(mutex);
    const auto [entry, isFirst] = running.try_emplace(key, result);
    if (!isFirst)
      result = entry->second;
    lock.unlock();
    if (isFirst) {
      task(); // keeps an exception for the callers
      lock.lock();
      running.erase(key);
      lock.unlock();
    }
    return result.get();
  }

private:
  struct KeyHash {
    size_t operator()(const PlanKey &key) const { return key.hash(); }
  };
  std::mutex mutex;
  std::unordered_map<PlanKey, std::shared_future<Made>, KeyHash> running;
};

} // namespace nsa
