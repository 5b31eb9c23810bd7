// Tunes on one thread of the engine what plans were served with something lesser: a queue of problems, each once.
// Ownership: an engine's; the thread begins with the first problem. Ending it, or the process, waits for no tuning:
// what waits is dropped, and what is going on ends at its next look at the clock, within one compilation or
// measurement. Thread-safety: all functions may be called by many threads at once. The child of a fork leaves its
// parent's alone.
#pragma once

#include "runtime/base/log.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "runtime/engine/counters.h"
#include "runtime/engine/plan_key.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_set>

namespace nsa {

class BackgroundTuner {
public:
  struct Job {
    PlanKey key;
    Spec spec;
    Maxima maxima;
  };
  // True once the work is to end; to be asked between its steps.
  using StopSignal = std::function<bool()>;
  struct Work {
    std::function<void()> prepare; // first, on the thread
    std::function<Status(const Job &job, const StopSignal &stop)> tune;
  };
  BackgroundTuner(Work work, Counters &counters, Logger logger);
  ~BackgroundTuner();
  BackgroundTuner(const BackgroundTuner &) = delete;
  BackgroundTuner &operator=(const BackgroundTuner &) = delete;

  // Nothing, when the problem was added before.
  void add(const Job &job);
  // Begins no other work; returns at once.
  void stop();

private:
  friend class LiveTuners;
  void run();
  void join();

  Work work;
  Counters &counters;
  Logger logger;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> queue;
  struct Hash {
    size_t operator()(const PlanKey &key) const { return key.hash(); }
  };
  std::unordered_set<PlanKey, Hash> known;
  std::atomic<bool> stopping{false};
  std::mutex joinMutex; // the destructor and the end of the process may both wait
  std::thread thread;
};

} // namespace nsa
