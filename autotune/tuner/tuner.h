// The tuner compiles candidates in parallel, rejects candidates with wrong results, measures the rest in interleaved
// rounds and names a winner. The tuner itself calls neither CUDA nor the compiler: callbacks do this work, so tests can
// run the tuner with simulated clocks. docs/tuning.md describes the statistics of the tuner.
// Thread-safety: `tune` is a pure function of its arguments. The tuner calls the callback `compile` from several
// threads at once, and every other callback from one thread at a time.
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
  double predictedCost = 0; // the template's own estimate; only the order of costs matters
};

enum class CandidateOutcome { kPruned, kCompileFailed, kRejected, kMeasured, kWinner };
// Returns "pruned", "failed", "rejected", "measured" or "winner", which are the outcomes in the store's evidence.
std::string_view candidateOutcomeName(CandidateOutcome outcome);

// The detail text of a measured candidate whose time does not differ clearly from the winner's time.
inline constexpr std::string_view kTied = "may be as fast as the winner";

struct CandidateReport {
  Candidate candidate;
  CandidateOutcome outcome = CandidateOutcome::kPruned;
  double medianMs = 0;
  double ratioToIncumbent = 0; // ratio of the two costs, by the fit over all rounds
  int rounds = 0;
  std::string detail;
};

struct TuneCallbacks {
  // Compiles the candidate with this index and keeps the compiled kernel. The tuner calls `compile` from several
  // threads, once for each index.
  std::function<Status(size_t index)> compile;
  // The tuner calls this callback once on each new thread that compiles, before the thread's first compile. May be
  // empty.
  std::function<void()> beginThread;
  // Compares the output of the candidate's kernel with the reference. If `check` returns an error, the tuner rejects
  // the candidate and puts the error's text into the field `detail` of the candidate's report.
  std::function<Status(size_t index)> check;
  // Returns the milliseconds of one run of the candidate. An error removes the candidate.
  std::function<Result<double>(size_t index)> measure;
  // Begins a new session of measurements, in which the candidates run with newly allocated memory and new inputs. May
  // be empty.
  std::function<void()> restart;
  // Returns the seconds of a monotonic clock, by which the tuner measures the time budget.
  std::function<double()> now;
  // Receives the progress of a tuning: how many steps of the named phase are done, and how many there are in all. May
  // be empty.
  std::function<void(std::string_view phase, size_t done, size_t total)> progress;
};

struct TuneOptions {
  double budgetSeconds = 30;
  double spentSeconds = 0; // part of the budget that was spent before the tuner was called
  int compileThreads = 2;
  size_t maxCompiled = 32; // the candidates with the lowest predicted costs are compiled, and each template's cheapest
  int roundsPerRung = 3;   // successive halving: 3, 9, 27 rounds; about a third of the candidates survives each rung
  bool exhaustive =
      false; // compiles every candidate and measures each in all rounds; the normal search is judged by this
  double simplerWithin = 0.01; // of costs within this ratio the config with the lower predicted cost wins
  double resolutionMs = 0;     // of the clock; times that differ by less are a tie
  // `stateShift` says by how much the ratio of two candidates' times changes when the machine enters another lasting
  // state, for example when a neighbouring core becomes busy. A tuning runs in a single lasting state of the machine,
  // so the tuning cannot measure `stateShift`. Half of `stateShift` is added to the difference up to which a
  // candidate and the fastest candidate are a tie.
  double stateShift = 0;
  // The milliseconds of load after which the clock rates of the device are as in continuous work. Before the first
  // round and after each restart, the tuner runs candidates for `warmUpMs` and does not record their times. If 64 runs
  // of a candidate would take less than `warmUpMs`, the warm-up ends after one run of this candidate.
  double warmUpMs = 0;
  double restartSeconds = 0; // the expected duration of the first restart
  uint64_t seed = 1;         // of the random order within rounds
};

// The seconds that each phase of a tuning took. If a tuning was stopped before its end, the fields of TunePhases
// have no meaning.
struct TunePhases {
  double prepare = 0; // inputs and memory; the caller fills it in, because this happens before the tuner is called
  double compile = 0, check = 0;
  double measure = 0, restart = 0; // rounds, and the sessions that begin between them
};

struct TuneReport {
  size_t winner = 0;    // an index into `candidates`
  size_t incumbent = 0; // the candidate that ratios refer to: candidate 0, or the next one that works
  // True when a second tuning might name another winner. `tie` is true if another candidate's time is within
  // `simplerWithin` of the best time, or might be within `simplerWithin` after errors of measurement or in another
  // lasting state of the machine (`stateShift`).
  bool tie = false;
  double noise = 0; // relative standard deviation of one measured time; 0 when nothing was measured
  int sessions = 1; // how many sessions the times come from
  bool budgetExhausted = false;
  TunePhases phases;
  std::vector<CandidateReport> candidates; // in the order in which they were given

  // False when the time budget ended before every candidate was measured once, in one complete round. The winner of a
  // tuning without a complete round is the incumbent, unmeasured.
  bool wasMeasured() const { return candidates[winner].rounds > 0; }
};

// Tunes. Candidate 0 is the incumbent (the default kernel). `tune` fails only when no candidate compiles, passes the
// check and runs. When the time budget ends early, the best candidate so far wins; if no round was completed, the
// incumbent (the default kernel) wins, unmeasured.
Result<TuneReport> tune(const std::vector<Candidate> &candidates, const TuneCallbacks &callbacks,
                        const TuneOptions &options);

} // namespace nsa
