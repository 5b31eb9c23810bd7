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
  // other thread and returns its result, or throws its exception. The error of a thread that asked for other maxima may
  // not hold for this thread's, so `once` then calls `make`. `make` must first look for the plan in memory, because
  // another thread may have made it just before this call. The result of `make` must outlive all callers.
  Made once(const PlanKey &key, const Maxima &maxima, const std::function<Made()> &make) {
    for (;;) {
      std::packaged_task<Made()> task(make);
      Miss miss{task.get_future().share(), maxima};
      std::unique_lock lock(mutex);
      const auto [entry, isFirst] = running.try_emplace(key, miss);
      if (!isFirst)
        miss = entry->second;
      lock.unlock();
      if (isFirst) {
        task(); // keeps an exception for the callers
        lock.lock();
        running.erase(key);
        lock.unlock();
      }
      Made made = miss.made.get();
      if (made || miss.maxima == maxima)
        return made;
    }
  }

private:
  struct KeyHash {
    size_t operator()(const PlanKey &key) const { return key.hash(); }
  };
  struct Miss {
    std::shared_future<Made> made;
    Maxima maxima; // of the thread that makes the plan
  };
  std::mutex mutex;
  std::unordered_map<PlanKey, Miss, KeyHash> running;
};

} // namespace nsa
