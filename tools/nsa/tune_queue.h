// Which kernel is tuned next, by whom, and for how long: workers take jobs of one family after another, so that what is
// compiled for one length serves the next, and share what is left of the budget.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "tools/nsa/tune_jobs.h"

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa::tools {

class TuneQueue {
public:
  struct Limits {
    double totalSeconds = 0;  // of everything together; 0: none
    double kernelSeconds = 0; // of each kernel at most; 0: the engine's own
    int workers = 1;
    std::function<double()> now; // monotonic seconds
  };
  struct Ticket {
    size_t job = 0;     // index into the jobs
    double seconds = 0; // 0: the engine's own
  };
  struct State {
    size_t done = 0, total = 0, working = 0;
    std::optional<double> secondsLeft; // nothing is known before the first job is done
  };

  // `jobs` outlive the queue; `wanted` are the indices of those to do, in their order.
  TuneQueue(const std::vector<TuneJob> &jobs, std::vector<size_t> wanted, Limits limits);

  // Nothing: all are taken, the budget is spent or will be by what a kernel needs at least, or it was stopped. `family`
  // is the worker's last one, empty at first.
  std::optional<Ticket> take(const std::string &family);
  void finish(size_t job);
  // Nobody takes another one.
  void stop();
  // Those that nobody took.
  std::vector<size_t> left() const;
  State state() const;

private:
  double weightOf(size_t job) const;
  std::optional<size_t> choose(const std::string &family) const;
  // The second largest of beyondSeconds: nobody begins what would end so late, and a single slow one stops nobody.
  double usualBeyondSeconds() const;

  const std::vector<TuneJob> &jobs;
  const Limits limits;
  const double begin;
  mutable std::mutex mutex;
  std::vector<size_t> waiting;
  std::set<std::string> opened; // families that somebody has begun
  struct Held {
    double weight = 0, begin = 0, seconds = 0;
  };
  std::map<size_t, Held> inHand;
  double doneWeight = 0;
  // By how much the last kernels have exceeded their shares: by the default that is compiled and checked whatever the
  // budget says.
  std::array<double, 8> beyondSeconds = {};
  size_t measuredJobs = 0, doneJobs = 0, total = 0;
  bool stopped = false;
};

} // namespace nsa::tools
