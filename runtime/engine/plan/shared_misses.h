// The plans that threads of this process are making. Threads that miss the same plan share one miss: the first thread
// makes the plan, and the other threads wait for its result. Threads that miss different plans do not wait for each
// other.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/graph/plan_key.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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
      auto own = std::make_shared<Miss>(Miss{.maxima = maxima}); // before the entry, which must not stay null
      std::unique_lock lock(mutex);
      const auto [entry, isFirst] = running.try_emplace(key, std::move(own));
      const std::shared_ptr<Miss> miss = entry->second;
      if (isFirst) {
        lock.unlock();
        std::optional<Made> made;
        std::exception_ptr thrown;
        try {
          made = make();
        } catch (...) {
          thrown = std::current_exception();
        }
        lock.lock();
        miss->made = std::move(made);
        miss->thrown = std::move(thrown);
        running.erase(key);
        ended.notify_all();
      } else {
        ended.wait(lock, [&] { return miss->made || miss->thrown; });
      }
      if (miss->thrown)
        std::rethrow_exception(miss->thrown);
      if (*miss->made || miss->maxima == maxima)
        return *miss->made;
    }
  }

private:
  // This is what a std::shared_future holds. libstdc++ sets a future through call_once, which wakes waiters by a system
  // call even if there are none.
  struct Miss {
    Maxima maxima; // of the thread that makes the plan
    std::optional<Made> made{};
    std::exception_ptr thrown{};
  };
  std::mutex mutex;
  std::condition_variable ended; // one of the misses
  std::unordered_map<PlanKey, std::shared_ptr<Miss>, PlanKey::Hash> running;
};

} // namespace nsa
