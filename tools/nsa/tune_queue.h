// Decides which kernel a worker tunes next, and for how long. A worker takes jobs of one family after another, so that
// kernels compiled for one length serve the next. All workers share the rest of the budget.
// Thread-safety: many threads may call the functions of tune_queue.h at once.
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
    double totalSeconds = 0;  // for all jobs together; 0: no limit
    double kernelSeconds = 0; // for each kernel at most; 0: the engine's budget
    int workers = 1;
    std::function<double()> now; // monotonic seconds
  };
  struct Ticket {
    size_t job = 0;     // index into the jobs
    double seconds = 0; // 0: the engine's budget
  };
  struct State {
    size_t done = 0, total = 0, working = 0;
    std::optional<double> secondsLeft; // nullopt before the first job is done
  };

  // `jobs` must outlive the queue. `wanted` has the indices of the jobs to do, in the order of the work.
  TuneQueue(const std::vector<TuneJob> &jobs, std::vector<size_t> wanted, Limits limits);

  // Takes a job. nullopt when all jobs are taken, when the queue was stopped, or when the rest of the budget is less
  // than a kernel needs at least. `family` is the family of the worker's last job, and empty at first.
  std::optional<Ticket> take(const std::string &family);
  void finish(size_t job);
  // Ends the queue: no worker gets another job.
  void stop();
  // Returns the jobs that no worker has taken.
  std::vector<size_t> left() const;
  State state() const;

private:
  double weightOf(size_t job) const;
  std::optional<size_t> choose(const std::string &family) const;
  // The second largest of beyondSeconds. A job does not begin if it would end later than the budget by this many
  // seconds. The second largest excess is taken, so that a single slow job is ignored.
  double usualBeyondSeconds() const;

  const std::vector<TuneJob> &jobs;
  const Limits limits;
  const double begin;
  mutable std::mutex mutex;
  std::vector<size_t> waiting;
  std::set<std::string> opened; // families that a worker has begun
  struct Held {
    double weight = 0, begin = 0, seconds = 0;
  };
  std::map<size_t, Held> inHand;
  double doneWeight = 0;
  // By how many seconds the last kernels have exceeded their shares. The default kernel is compiled and checked even
  // when the budget is spent.
  std::array<double, 8> beyondSeconds = {};
  size_t measuredJobs = 0, doneJobs = 0, total = 0;
  bool stopped = false;
};

} // namespace nsa::tools
