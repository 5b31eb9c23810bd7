// Work that is shared by the caller and threads of the library's own: no exception leaves one, no signal of the host's
// runs on one, and where none is to be had the caller does the work.
// Thread-safety: `work` is called by several threads at once.
#pragma once

#include "runtime/base/attempt.h"
#include "runtime/base/signals_blocked.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <pthread.h>
#include <thread>
#include <utility>
#include <vector>

namespace nsa {

struct HelperThreads {
  const char *name;              // of the threads: at most 15 letters
  const char *purpose;           // of what `attempt` is told: "to ..."
  std::function<void()> begin{}; // called first on each of them, never on the caller; may be empty
};

// Calls work(0) to work(count - 1), which return Status, begun in this order, on up to `threads` threads of which the
// caller is one. Once one has failed no other is begun, so the first that fails is always the same.
template <typename Work>
Status runAtOnce(size_t count, size_t threads, const HelperThreads &helpers, const Work &work) {
  std::vector<Status> results(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto takeTurns = [&] {
    for (size_t i; !failed.load() && (i = next++) < count;)
      if (results[i] = attempt(helpers.purpose, [&] { return work(i); }); !results[i].isOk())
        failed.store(true);
  };
  const auto help = [&] {
    const Status begun = attempt(helpers.purpose, [&] {
      if (helpers.begin)
        helpers.begin();
      return Status::ok();
    });
    if (begun.isOk()) // else the others do the work
      takeTurns();
  };
  {
    const size_t wanted = std::min(count, threads);
    std::vector<std::jthread> pool;
    pool.reserve(wanted);
    for (size_t i = 1; i < wanted; ++i) {
      try {
        SignalsBlocked blocked;
        pool.emplace_back(help);
        pthread_setname_np(pool.back().native_handle(), helpers.name);
      } catch (const std::exception &) {
        break; // fewer threads than wished: those that exist, and the caller, do the work
      }
    }
    takeTurns();
  }
  for (Status &result : results)
    NSA_RETURN_IF_ERROR(std::move(result));
  return Status::ok();
}

} // namespace nsa
