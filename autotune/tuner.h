// The tuner: compiles candidates in parallel, gates them on correctness, measures the survivors in
// interleaved rounds and names a winner. It sees neither CUDA nor the compiler: everything real is a
// callback, so it is tested with fake clocks. docs/tuning.md states the statistics.
// Thread-safety: `tune` is a pure function of its arguments; `compile` is called from several threads at
// once, every other callback by one thread at a time.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct Candidate {
  std::string templateName;
  std::string config;       // "key_tile=64 query_tile=64 ..."
  double predictedCost = 0; // the template's own estimate; only its order matters
};

enum class CandidateOutcome { kPruned, kCompileFailed, kRejected, kMeasured, kWinner };
// "pruned", "failed", "rejected", "measured", "winner": the outcomes of the store's evidence.
std::string_view candidateOutcomeName(CandidateOutcome outcome);

// The detail of a measured candidate that makes the winner a tie.
inline constexpr std::string_view kTied = "may be as fast as the winner";

struct CandidateReport {
  Candidate candidate;
  CandidateOutcome outcome = CandidateOutcome::kPruned;
  double medianMs = 0;
  double ratioToIncumbent = 0; // of the costs that the fit over all rounds gives them
  int rounds = 0;
  std::string detail;
};

struct TuneCallbacks {
  // Compiles candidate `index` and keeps it; called from several threads, once per index.
  std::function<Status(size_t index)> compile;
  // Called first on each thread that is begun to compile; may be empty.
  std::function<void()> beginThread;
  // Compares the candidate's result with the reference; an error rejects it (its text is kept).
  std::function<Status(size_t index)> check;
  // Milliseconds of one run of the candidate. An error drops it.
  std::function<Result<double>(size_t index)> measure;
  // Begins a session: what is measured from here on is measured in other memory, on other inputs. May be empty.
  std::function<void()> restart;
  // Monotonic seconds, for the budget.
  std::function<double()> now;
  // Progress, may be empty: done and total steps of the named phase.
  std::function<void(std::string_view phase, size_t done, size_t total)> progress;
};

struct TuneOptions {
  double budgetSeconds = 30;
  double spentSeconds = 0; // of the budget, on what was prepared before the tuner was called
  int compileThreads = 2;
  size_t maxCompiled = 32;     // candidates compiled, cheapest predicted first; each template's cheapest among them
  int roundsPerRung = 3;       // successive halving: 3, 9, 27 rounds; about a third survives each rung
  bool exhaustive = false;     // compiles every candidate and measures each in all rounds: what the search is held to
  double simplerWithin = 0.01; // within this ratio the cheaper predicted config wins
  double resolutionMs = 0;     // of the clock: times that differ by less are a tie
  // By how much the ratio of two costs differs between one state of the machine and another that lasts: what else it
  // computes, beside whom. A tuning sees one of them. Half of it is what one of two tunings must call a tie.
  double stateShift = 0;
  // Of load after which clocks are those of lasting work. So much runs uncounted before the first round and after each
  // restart; kernels too short to fill it are no such load.
  double warmUpMs = 0;
  double restartSeconds = 0; // what the first restart is expected to take
  uint64_t seed = 1;         // order within rounds
};

// Where the seconds of a tuning went; of one that was stopped they mean nothing.
struct TunePhases {
  double prepare = 0; // inputs and memory before the tuner was called; its caller's to fill in
  double compile = 0, check = 0;
  double measure = 0, restart = 0; // rounds, and the sessions begun between them
};

struct TuneReport {
  size_t winner = 0;    // index into candidates
  size_t incumbent = 0; // what the ratios are relative to: candidate 0, or the next one that works
  bool tie = false;     // another candidate may be within `simplerWithin` of the best, or be so in another state of
                        // the machine: a second tuning could name it
  double noise = 0;     // standard deviation of one measured time, relative; 0 when nothing was measured
  int sessions = 1;     // in which the times were taken
  bool budgetExhausted = false;
  TunePhases phases;
  std::vector<CandidateReport> candidates; // in the order given

  // Else the budget ended before one complete round, and the winner is nothing but the incumbent.
  bool wasMeasured() const { return candidates[winner].rounds > 0; }
};

// Candidate 0 is the incumbent (the default). Fails only when no candidate compiles, passes and runs. When the
// budget ends early the best so far wins; with no complete round that is the incumbent, unmeasured.
Result<TuneReport> tune(const std::vector<Candidate> &candidates, const TuneCallbacks &callbacks,
                        const TuneOptions &options);

} // namespace nsa
