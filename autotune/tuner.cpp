#include "autotune/tuner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

namespace nsa {

namespace {

constexpr int kRungs = 3;
constexpr int kRungGrowth = 3;
// Compiling may use this share of the budget; what is left measures what was compiled.
constexpr double kCompileShare = 0.5;
// Few rounds cannot tell neighbours apart, and disturbances only ever slow a run down: beside the best third
// stays whoever came this close to the leader in his better rounds (docs/tuning.md). Halves with each rung.
constexpr double kFirstMargin = 0.05;
// Costs order the candidates of one template; between templates they are guesses. So many of each one's cheapest come
// first, in turns, and no template goes unmeasured because another one thinks better of itself.
constexpr size_t kFirstOfTemplate = 4;

constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();

// The value that a quarter of the others stays below; of three it is the least.
double lowerQuartile(std::vector<double> values) {
  auto quarter = values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

class Tuner {
public:
  Tuner(const std::vector<Candidate> &candidates, const TuneCallbacks &callbacks, const TuneOptions &options)
      : callbacks(callbacks), options(options), start(callbacks.now()), times(candidates.size()), random(options.seed) {
    report.candidates.reserve(candidates.size());
    for (const Candidate &candidate : candidates)
      report.candidates.emplace_back().candidate = candidate;
  }

  Result<TuneReport> run() {
    order();
    std::vector<size_t> alive = checked(compiled());
    if (alive.empty())
      return noneLeft();
    report.incumbent = alive.front();
    measureRungs(alive);
    if (alive.empty())
      return noneLeft();
    decide(alive);
    return std::move(report);
  }

private:
  // The incumbent first, then the cheapest of each template, then the cheapest of all. Those beyond maxCompiled are
  // pruned, but never a template's only one.
  void order() {
    ranked.resize(report.candidates.size());
    std::iota(ranked.begin(), ranked.end(), size_t{0});
    std::sort(ranked.begin() + 1, ranked.end(), [&](size_t a, size_t b) { return isSimpler(a, b); });
    std::map<std::string_view, size_t> seen; // by template
    std::vector<size_t> turn(ranked.size()); // by candidate: how many of its template come before it
    for (size_t index : ranked)
      turn[index] = std::min(seen[report.candidates[index].candidate.templateName]++, kFirstOfTemplate);
    std::sort(ranked.begin() + 1, ranked.end(),
              [&](size_t a, size_t b) { return turn[a] != turn[b] ? turn[a] < turn[b] : isSimpler(a, b); });
    size_t kept = std::min(ranked.size(), std::max(options.maxCompiled, seen.size()));
    for (size_t i = kept; i < ranked.size(); ++i)
      report.candidates[ranked[i]].detail = "not compiled: beyond the " + std::to_string(kept) + " cheapest predicted";
    ranked.resize(kept);
  }

  // A total order, so that a tie has one winner.
  bool isSimpler(size_t a, size_t b) const {
    double costA = report.candidates[a].candidate.predictedCost, costB = report.candidates[b].candidate.predictedCost;
    return costA != costB ? costA < costB : a < b;
  }

  bool spent(double share) {
    if (callbacks.now() - start < options.budgetSeconds * share)
      return false;
    report.budgetExhausted = true;
    return true;
  }

  void announce(std::string_view phase, size_t done, size_t total) {
    if (callbacks.progress)
      callbacks.progress(phase, done, total);
  }

  void fail(size_t index, CandidateOutcome outcome, const Status &status) {
    report.candidates[index].outcome = outcome;
    report.candidates[index].detail = status.toString();
    if (!firstError)
      firstError = status;
  }

  // Compiles in order of rank. The incumbent is compiled whatever the budget says: without it there is no result.
  std::vector<size_t> compiled() {
    std::vector<std::optional<Status>> results(ranked.size());
    std::mutex mutex; // the clock, the progress and what they touch
    std::atomic<size_t> next = 0;
    size_t done = 0;
    auto work = [&] {
      for (size_t i; (i = next++) < ranked.size();) {
        {
          std::lock_guard lock(mutex);
          if (i > 0 && spent(kCompileShare))
            return;
        }
        results[i] = callbacks.compile(ranked[i]);
        std::lock_guard lock(mutex);
        announce("compile", ++done, ranked.size());
      }
    };
    {
      size_t count = std::clamp<size_t>(static_cast<size_t>(std::max(options.compileThreads, 1)), 1, ranked.size());
      std::vector<std::jthread> pool;
      for (size_t i = 1; i < count; ++i)
        pool.emplace_back(work);
      work();
    }

    std::vector<size_t> good;
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (!results[i])
        report.candidates[ranked[i]].detail = "not compiled: out of budget";
      else if (!results[i]->isOk())
        fail(ranked[i], CandidateOutcome::kCompileFailed, *results[i]);
      else
        good.push_back(ranked[i]);
    }
    return good;
  }

  // Nothing is measured that has not computed the right result. Goes on past the budget until one passes.
  std::vector<size_t> checked(const std::vector<size_t> &indices) {
    std::vector<size_t> good;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!good.empty() && spent(1)) {
        report.candidates[indices[i]].detail = "not checked: out of budget";
        continue;
      }
      Status status = callbacks.check(indices[i]);
      if (status.isOk())
        good.push_back(indices[i]);
      else
        fail(indices[i], CandidateOutcome::kRejected, status);
      announce("check", i + 1, indices.size());
    }
    return good;
  }

  void measureRungs(std::vector<size_t> &alive) {
    int rounds = std::max(options.roundsPerRung, 1);
    int total = 0;
    for (int rung = 0, n = rounds; rung < kRungs; ++rung, n *= kRungGrowth)
      total += n;
    int done = 0;
    double margin = kFirstMargin;
    for (int rung = 0; rung < kRungs; ++rung, rounds *= kRungGrowth, margin /= 2) {
      // Nobody to compare with: further rounds would tell nothing.
      if (alive.size() < 2 && rung > 0)
        return;
      for (int i = 0; i < rounds; ++i) {
        if (!measureRound(alive) || alive.empty())
          return;
        announce("measure", static_cast<size_t>(++done), static_cast<size_t>(total));
      }
      if (rung + 1 < kRungs)
        dropTheSlow(alive, margin);
    }
  }

  // One round: every candidate alive once, in fresh random order. False when the budget ended in it; the times
  // of such a round are forgotten, because they have no counterpart.
  bool measureRound(std::vector<size_t> &alive) {
    std::vector<size_t> sequence = alive;
    std::shuffle(sequence.begin(), sequence.end(), random);
    for (std::vector<double> &column : times)
      column.push_back(kNoTime);
    for (size_t index : sequence) {
      if (spent(1)) {
        for (std::vector<double> &column : times)
          column.pop_back();
        return false;
      }
      Result<double> time = callbacks.measure(index);
      Status status = time.status();
      if (time && !(std::isfinite(*time) && *time > 0))
        status = Status::error(ErrorCode::kDeviceError, "measured " + std::to_string(*time) + " ms");
      if (status.isOk()) {
        times[index].back() = *time;
        continue;
      }
      fail(index, CandidateOutcome::kRejected, status);
      std::fill(times[index].begin(), times[index].end(), kNoTime);
      std::erase(alive, index);
    }
    // All times are kept, so the ratios can be taken to another incumbent: the next one in rank.
    if (!alive.empty() && std::find(alive.begin(), alive.end(), report.incumbent) == alive.end())
      report.incumbent = alive.front();
    return true;
  }

  // To the incumbent's time, over the rounds in which both ran: in such a round both saw the same clocks and heat.
  std::vector<double> ratios(size_t index) const {
    const std::vector<double> &own = times[index], &base = times[report.incumbent];
    std::vector<double> result;
    for (size_t round = 0; round < own.size(); ++round)
      if (!std::isnan(own[round]) && !std::isnan(base[round]))
        result.push_back(own[round] / base[round]);
    return result;
  }

  void dropTheSlow(std::vector<size_t> &alive, double margin) {
    std::vector<double> medians;
    for (size_t index : alive)
      medians.push_back(median(ratios(index)));
    std::vector<double> sorted = medians;
    std::sort(sorted.begin(), sorted.end());
    double bestThird = sorted[(sorted.size() + kRungGrowth - 1) / kRungGrowth - 1];
    double nearLeader = sorted.front() * (1 + margin);
    std::vector<size_t> kept;
    for (size_t i = 0; i < alive.size(); ++i)
      if (medians[i] <= bestThird || lowerQuartile(ratios(alive[i])) <= nearLeader || alive[i] == report.incumbent)
        kept.push_back(alive[i]);
    alive = std::move(kept);
  }

  // The least ratio wins, but among those within `simplerWithin` of it the cheapest predicted.
  void decide(const std::vector<size_t> &alive) {
    for (size_t index = 0; index < times.size(); ++index) {
      CandidateReport &candidate = report.candidates[index];
      std::vector<double> own;
      std::copy_if(times[index].begin(), times[index].end(), std::back_inserter(own),
                   [](double time) { return !std::isnan(time); });
      if (own.empty())
        continue;
      candidate.outcome = CandidateOutcome::kMeasured;
      candidate.rounds = static_cast<int>(own.size());
      candidate.ratioToIncumbent = median(ratios(index));
      candidate.medianMs = median(std::move(own));
    }
    report.winner = report.incumbent;
    if (report.candidates[report.incumbent].rounds > 0) {
      double best = std::numeric_limits<double>::infinity();
      for (size_t index : alive)
        best = std::min(best, report.candidates[index].ratioToIncumbent);
      std::vector<size_t> close;
      for (size_t index : alive)
        if (report.candidates[index].ratioToIncumbent <= best * (1 + options.simplerWithin))
          close.push_back(index);
      report.winner =
          *std::min_element(close.begin(), close.end(), [&](size_t a, size_t b) { return isSimpler(a, b); });
      report.tie = close.size() > 1;
    } else {
      for (size_t index : alive)
        if (index != report.incumbent)
          report.candidates[index].detail = "not measured: out of budget";
    }
    report.candidates[report.winner].outcome = CandidateOutcome::kWinner;
  }

  Status noneLeft() const {
    size_t failed = 0, rejected = 0;
    for (const CandidateReport &candidate : report.candidates) {
      failed += candidate.outcome == CandidateOutcome::kCompileFailed;
      rejected += candidate.outcome == CandidateOutcome::kRejected;
    }
    const ErrorInfo &cause = firstError->error();
    return Status::error(cause.code,
                         "no candidate is left: " + std::to_string(failed) + " did not compile, " +
                             std::to_string(rejected) +
                             " did not compute the reference's result or did not run; first: " + cause.toString(),
                         cause.hint);
  }

  const TuneCallbacks &callbacks;
  const TuneOptions &options;
  const double start;
  TuneReport report;
  std::vector<size_t> ranked;             // to be compiled, in this order
  std::vector<std::vector<double>> times; // [candidate][round], kNoTime where it did not run
  std::mt19937_64 random;
  std::optional<Status> firstError;
};

} // namespace

std::string_view candidateOutcomeName(CandidateOutcome outcome) {
  switch (outcome) {
  case CandidateOutcome::kPruned:
    return "pruned";
  case CandidateOutcome::kCompileFailed:
    return "failed";
  case CandidateOutcome::kRejected:
    return "rejected";
  case CandidateOutcome::kMeasured:
    return "measured";
  case CandidateOutcome::kWinner:
    return "winner";
  }
  assert(false && "an outcome of no known kind");
  return "";
}

Result<TuneReport> tune(const std::vector<Candidate> &candidates, const TuneCallbacks &callbacks,
                        const TuneOptions &options) {
  assert(callbacks.compile && callbacks.check && callbacks.measure && callbacks.now && "only progress may be empty");
  if (candidates.empty())
    return Status::error(ErrorCode::kUnsupported, "no template offers a candidate for this problem");
  return Tuner(candidates, callbacks, options).run();
}

} // namespace nsa
