#include "autotune/tuner/tuner.h"

#include "autotune/tuner/round_table.h"
#include "runtime/process/run_at_once.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>

namespace nsa {

namespace {

constexpr int kRungs = 3;
constexpr int kRungGrowth = 3;
// Compiling may use this share of the budget, compiling and checking together the second; the rest measures.
constexpr double kCompileShare = 0.5, kCheckShare = 0.7;
// Standard errors. Leaving the race takes fewer than being told apart from the winner: who leaves is judged by his
// better rounds as well, and a tie is still said of those who left (docs/tuning.md).
constexpr double kDropErrors = 2, kTieErrors = 3;
// The leader must beat the default by so many to take its place, so that tunings agree where they can.
constexpr double kWinErrors = 1.5;
// Beginning sessions may take this share of the time since the tuning began, or so long where nothing had to be
// compiled: where it is cheap each round is one, where tensors are large there are few.
constexpr double kRestartShare = 0.05, kRestartSeconds = 0.03;
// Of one warm-up at most.
constexpr int kWarmUpRuns = 64;
// So many times slower than the leader in its best round: no disturbance explains it.
constexpr double kHopeless = 3;
// Costs order the candidates of one template; between templates they are guesses. So many of each one's cheapest come
// first, in turns, and no template goes unmeasured because another one thinks better of itself.
constexpr size_t kFirstOfTemplate = 4;

class Tuner {
public:
  Tuner(const std::vector<Candidate> &candidates, const TuneCallbacks &callbacks, const TuneOptions &options)
      : callbacks(callbacks), options(options), start(callbacks.now()), table(candidates.size()), random(options.seed),
        restartSeconds(options.restartSeconds) {
    report.candidates.reserve(candidates.size());
    for (const Candidate &candidate : candidates)
      report.candidates.emplace_back().candidate = candidate;
  }

  Result<TuneReport> run() {
    order();
    NSA_ASSIGN_OR_RETURN(std::vector<size_t> ready, compiled());
    const double compiledAt = callbacks.now();
    std::vector<size_t> alive = checked(ready);
    const double checkedAt = callbacks.now();
    if (alive.empty())
      return noneLeft();
    report.incumbent = alive.front();
    measureRungs(alive);
    report.phases = {.compile = compiledAt - start,
                     .check = checkedAt - compiledAt,
                     .measure = callbacks.now() - checkedAt - spentOnRestarts,
                     .restart = spentOnRestarts};
    if (alive.empty())
      return noneLeft();
    decide(alive);
    return std::move(report);
  }

private:
  // The order of compilation: the incumbent, then the candidate of each template with the lowest cost, then all others
  // by cost. Candidates beyond maxCompiled are pruned, but never the only candidate of a template. An exhaustive search
  // prunes none.
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
    const size_t most = options.exhaustive ? ranked.size() : std::max(options.maxCompiled, seen.size());
    const size_t kept = std::min(ranked.size(), most);
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
    if (callbacks.now() - start < std::max(options.budgetSeconds - options.spentSeconds, 0.0) * share)
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
  Result<std::vector<size_t>> compiled() {
    std::vector<std::optional<Status>> results(ranked.size());
    std::mutex mutex; // the clock, the progress and what they touch
    size_t done = 0;
    const HelperThreads helpers{"nsa-compile", "to compile a candidate", callbacks.beginThread};
    const auto threads = static_cast<size_t>(std::max(options.compileThreads, 1));
    NSA_RETURN_IF_ERROR(runAtOnce(ranked.size(), threads, helpers, [&](size_t i) {
      {
        std::lock_guard lock(mutex);
        if (i > 0 && spent(kCompileShare))
          return Status::ok();
      }
      // What one candidate throws is its own failure.
      results[i] = attempt(helpers.purpose, [&] { return callbacks.compile(ranked[i]); });
      std::lock_guard lock(mutex);
      announce("compile", ++done, ranked.size());
      return Status::ok();
    }));

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
      if (!good.empty() && spent(kCheckShare)) {
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
    warmUp(alive);
    for (int rung = 0; rung < kRungs; ++rung, rounds *= kRungGrowth) {
      // One candidate is left, so there is nothing to compare it with.
      if (alive.size() < 2 && rung > 0)
        return;
      for (int i = 0; i < rounds; ++i) {
        if (done > 0 && beginSession())
          warmUp(alive);
        if (!measureRound(alive) || alive.empty())
          return;
        announce("measure", static_cast<size_t>(++done), static_cast<size_t>(total));
        if (rung == 0 && !options.exhaustive)
          dropTheHopeless(alive);
      }
      if (rung + 1 < kRungs && !options.exhaustive)
        dropTheSlow(alive);
    }
  }

  // Whether one began. Another place in memory makes a kernel of microseconds faster or slower by more than the noise
  // of its times.
  bool beginSession() {
    const double begin = callbacks.now(), allowed = std::max(kRestartShare * (begin - start), kRestartSeconds);
    if (!callbacks.restart || spentOnRestarts + restartSeconds > allowed || spent(1))
      return false;
    callbacks.restart();
    table.beginSession();
    ++report.sessions;
    restartSeconds = std::max(callbacks.now() - begin, 0.0);
    spentOnRestarts += restartSeconds;
    return true;
  }

  // A device that has rested runs faster for a while, so the candidate that is measured first would win. A candidate
  // that fails here will fail in the round, too.
  void warmUp(const std::vector<size_t> &alive) {
    double load = 0;
    for (int run = 0; run < kWarmUpRuns && load < options.warmUpMs && !spent(1); ++run) {
      const Result<double> time = callbacks.measure(alive[static_cast<size_t>(run) % alive.size()]);
      if (!time || !(*time * kWarmUpRuns >= options.warmUpMs))
        return;
      load += *time;
    }
  }

  // One round: every candidate alive once, in fresh random order. False when the budget ended in it.
  bool measureRound(std::vector<size_t> &alive) {
    const bool complete = measureEach(alive);
    // The next one in rank: ratios are taken to it, and it stays in the race to the end.
    if (!alive.empty() && std::find(alive.begin(), alive.end(), report.incumbent) == alive.end())
      report.incumbent = alive.front();
    return complete;
  }

  bool measureEach(std::vector<size_t> &alive) {
    std::vector<size_t> sequence = alive;
    std::shuffle(sequence.begin(), sequence.end(), random);
    table.beginRound();
    for (size_t index : sequence) {
      if (spent(1)) {
        table.abandonRound();
        return false;
      }
      Result<double> time = callbacks.measure(index);
      Status status = time.status();
      if (time && !(std::isfinite(*time) && *time > 0))
        status = Status::error(ErrorCode::kDeviceError, "measured " + std::to_string(*time) + " ms");
      if (status.isOk()) {
        table.record(index, *time);
        continue;
      }
      fail(index, CandidateOutcome::kRejected, status);
      table.forget(index);
      std::erase(alive, index);
    }
    return true;
  }

  size_t leaderOf(const std::vector<size_t> &alive, const RoundFit &fit) const {
    return *std::min_element(alive.begin(), alive.end(), [&](size_t a, size_t b) { return fit.cost[a] < fit.cost[b]; });
  }

  void dropTheHopeless(std::vector<size_t> &alive) {
    const RoundFit fit = table.fit();
    const double limit = fit.cost[leaderOf(alive, fit)] + std::log(kHopeless);
    std::erase_if(alive, [&](size_t index) { return index != report.incumbent && fit.optimistic[index] > limit; });
  }

  // Stays who may still be the best, or as good as the best and simpler.
  void dropTheSlow(std::vector<size_t> &alive) {
    const RoundFit fit = table.fit();
    const size_t leader = leaderOf(alive, fit);
    std::erase_if(alive, [&](size_t index) {
      if (index == leader)
        return false;
      const double error = table.differenceError(fit, index, leader);
      const double limit = fit.cost[leader] + std::log1p(options.simplerWithin) + kDropErrors * error;
      return index != report.incumbent && std::min(fit.optimistic[index], fit.cost[index]) > limit;
    });
  }

  // The candidate with the lowest measured cost leads. The default wins where no other is better. Otherwise the winner
  // is the candidate with the lowest predicted cost among those within `simplerWithin` of the leader. Every other
  // candidate that may be that near, as far as noise, sessions, clock and the state of the machine tell, makes a tie:
  // another tuning could name it.
  void decide(const std::vector<size_t> &alive) {
    const RoundFit fit = table.fit();
    for (size_t index = 0; index < report.candidates.size(); ++index) {
      CandidateReport &candidate = report.candidates[index];
      candidate.rounds = table.rounds(index);
      if (candidate.rounds == 0)
        continue;
      candidate.outcome = CandidateOutcome::kMeasured;
      candidate.ratioToIncumbent = std::exp(fit.cost[index] - fit.cost[report.incumbent]);
      candidate.medianMs = table.medianMs(index);
    }
    report.winner = report.incumbent;
    if (report.candidates[report.incumbent].rounds > 0) {
      report.noise = fit.noise;
      const size_t leader = leaderOf(alive, fit);
      const auto behind = [&](size_t index, double errors) {
        return index == leader ? 0
                               : fit.cost[index] - fit.cost[leader] - std::log1p(options.simplerWithin) -
                                     errors * table.differenceError(fit, index, leader);
      };
      report.winner = leader;
      for (size_t index : alive)
        if (behind(index, 0) <= 0 && isSimpler(index, report.winner))
          report.winner = index;
      if (behind(report.incumbent, kWinErrors) <= 0)
        report.winner = report.incumbent;
      report.candidates[report.winner].detail = reasonOf(leader);
      const double resolution =
          std::log1p(options.resolutionMs / table.medianMs(leader)) + std::log1p(options.stateShift / 2);
      for (size_t index = 0; index < report.candidates.size(); ++index)
        if (table.rounds(index) > 0 && index != report.winner && behind(index, kTieErrors) <= resolution) {
          report.tie = true;
          report.candidates[index].detail = kTied;
        }
    } else {
      for (size_t index : alive)
        if (index != report.incumbent)
          report.candidates[index].detail = "not measured: out of budget";
    }
    report.candidates[report.winner].outcome = CandidateOutcome::kWinner;
  }

  // Says why the winner won although another candidate has a shorter median. Empty if no other has.
  std::string reasonOf(size_t leader) const {
    const double winnerMs = report.candidates[report.winner].medianMs;
    const bool isFastest = std::ranges::none_of(report.candidates, [&](const CandidateReport &other) {
      return other.outcome == CandidateOutcome::kMeasured && other.medianMs < winnerMs;
    });
    if (isFastest)
      return "";
    if (report.winner == leader)
      return "the fastest where candidates ran side by side; medians of other rounds count less";
    char within[32];
    std::snprintf(within, sizeof within, "%g %%", options.simplerWithin * 100);
    return report.winner == report.incumbent
               ? "the default stays: nothing beats it by " + std::string(within) + " and by more than the noise"
               : "within " + std::string(within) + " of the fastest, and predicted to be cheaper";
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
  std::vector<size_t> ranked; // to be compiled, in this order
  RoundTable table;
  std::mt19937_64 random;
  double restartSeconds, spentOnRestarts = 0; // of the last one or as expected, of all
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
