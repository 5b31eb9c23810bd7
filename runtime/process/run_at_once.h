// Divides the calls of a function among the calling thread and threads that the library begins. The library's threads
// let no exception escape, and they block all signals, so that no signal handler of the host runs on them. Where no
// thread can be made, the caller does all the work.
// Thread-safety: several threads call `work` at once.
#pragma once

#include "runtime/process/attempt.h"
#include "runtime/process/signals_blocked.h"

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
  const char *name;              // of each thread: at most 15 characters
  const char *purpose;           // see `attempt`: begins with "to"
  std::function<void()> begin{}; // called first on each new thread, never on the caller; may be empty
};

// Calls `work`, which returns a Status, with each number from 0 to count - 1. The calls begin in ascending order of the
// numbers. At most `threads` threads call `work`, and the calling thread is one of them. After a failed call of `work`
// no further call begins. runAtOnce returns the error of the call with the lowest number among the failed calls, so
// that the error is the same in every run.
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
    if (begun.isOk()) // otherwise the other threads do the work
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
        break; // there are fewer threads than wished, and they do the work with the caller
      }
    }
    takeTurns();
  }
  for (Status &result : results)
    NSA_RETURN_IF_ERROR(std::move(result));
  return Status::ok();
}

} // namespace nsa
