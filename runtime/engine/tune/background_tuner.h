// Tunes, on one thread of the engine, the problems whose plans and programs got a kernel that is not tuned or is
// outdated. A problem is in the tuner's queue at most once. Ownership: an engine owns the tuner. The tuner starts its
// thread when the first problem is added. Neither the tuner's destructor nor the end of the process waits for a whole
// tuning: queued problems are dropped, and the tuning in progress ends after at most one more compilation or
// measurement. If a callback of the host is running, the tuner's destructor and the end of the process wait until the
// callback has returned. Thread-safety: all functions may be called by many threads at once. The child of a fork does
// not touch the tuner of its parent.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/report/counters.h"
#include "runtime/process/log.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>

namespace nsa {

class BackgroundTuner {
public:
  // A StopSignal returns true once the work of the tuner must end. A tuning calls the StopSignal at least once between
  // two compilations or measurements.
  using StopSignal = std::function<bool()>;
  // A problem: the kernels of a plan, or the kernel of a program.
  struct Job {
    std::string key; // the keys of its kernels
    // `tune` sets `better` to true if it measured or compiled a kernel that later plans get. `tune` may set `better`
    // and also return an error, because one kernel of a plan may become better while another kernel fails.
    std::function<Status(const StopSignal &stop, bool &better)> tune;
    std::function<void()> tell{}; // tells the host of a better kernel, on the thread; may be empty
  };
  // `prepare` is called once, on the new thread, before the first problem.
  BackgroundTuner(std::function<void()> prepare, Counters &counters, Logger logger);
  ~BackgroundTuner();
  BackgroundTuner(const BackgroundTuner &) = delete;
  BackgroundTuner &operator=(const BackgroundTuner &) = delete;

  // Queues the problem of `job`, unless it was queued before.
  void add(Job job);
  // Ends the tuner: after `stop` the tuner tunes no further problem and calls no further callback of the host. `stop`
  // waits for a callback that is running, unless that callback calls `stop`.
  void stop();
  // Returns whether the calling thread is the thread of this tuner.
  bool isOwnThread() const;

private:
  friend class LiveTuners;
  void run();
  void signal(); // to begin nothing more
  void tell(const Job &job);
  void warn(const char *what, const Status &why);
  void join();

  std::function<void()> prepare;
  Counters &counters;
  Logger logger;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> queue;
  std::unordered_set<std::string> known; // keys
  std::atomic<bool> stopping{false};
  bool telling = false;
  std::atomic<std::thread::id> own{}; // of the thread, once it runs
  std::mutex joinMutex;               // the destructor and the end of the process may both wait
  std::thread thread;
};

} // namespace nsa
