// Decides which kernel a worker tunes next, and for how long. A worker takes jobs of the same family one after another,
// because kernels that were compiled for one length can be used for the next length. All workers share the time that is
// left of the budget.
// Thread-safety: many threads may call the functions of tune_queue.h at once.
#pragma once

#include "autotune/workload/tune_jobs.h"

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa {

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

  // `jobs` must outlive the queue. `wanted` has the indices of the jobs to tune, in the order in which they are tuned.
  TuneQueue(const std::vector<TuneJob> &jobs, std::vector<size_t> wanted, Limits limits);

  // Takes the next job. Returns nullopt when all jobs are taken, when the queue was stopped, or when the budget leaves
  // no time for another kernel. `family` is the family of the job that the worker took last, and is empty for its first
  // job.
  std::optional<Ticket> take(const std::string &family);
  void finish(size_t job);
  // Stops the queue, so that no worker gets another job.
  void stop();
  // Returns the jobs that no worker has taken.
  std::vector<size_t> left() const;
  State state() const;

private:
  double weightOf(size_t job) const;
  double weightOfWaiting() const;
  std::optional<size_t> choose(const std::string &family) const;
  // Returns how many seconds a job usually takes longer than its share of the budget: the second largest value in
  // beyondSeconds, so that a single slow job is ignored. A job is started only if the time that is left of the budget
  // is longer than usualBeyondSeconds().
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
  // For each of the eight jobs that ended last: the seconds by which the job took longer than its share of the budget.
  // Tuning a kernel may take longer than its share of the budget, because the kernel's default candidate is compiled
  // and checked even when the budget is spent.
  std::array<double, 8> beyondSeconds = {};
  size_t measuredJobs = 0, doneJobs = 0, total = 0;
  bool stopped = false;
};

} // namespace nsa
