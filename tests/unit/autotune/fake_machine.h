// A machine of numbers: times, noise, drift and the clock itself are drawn, so every statement about the tuner's
// statistics is repeatable. Thread-safety: one thread, but for compiles.
#pragma once

#include "autotune/tuner/tuner.h"

#include <atomic>
#include <random>
#include <set>
#include <vector>

namespace nsa {

struct FakeMachine {
  std::vector<double> trueMs;
  double noise = 0;    // standard deviation, relative
  double outliers = 0; // share of runs that take 20 % longer
  double drift = 0;    // slowdown from the first to the last of `driftRuns` runs
  double driftRuns = 2000;
  double sessionNoise = 0;       // standard deviation of what a session's memory does to a candidate, relative
  double restartSeconds = 0;     // to begin one
  bool restarts = true;          // false: all is measured in one
  double boost = 0, boostMs = 0; // by how much, and for how much of load, it is faster after a rest
  double compileSeconds = 0, checkSeconds = 0;
  std::set<size_t> doesNotCompile = {}, isWrong = {}, doesNotRun = {};
  uint64_t seed = 1;

  double seconds = 0, loadMs = 0; // of load since the last rest
  size_t runs = 0;
  std::vector<size_t> order = {};  // of the measured runs
  std::vector<double> placed = {}; // by candidate: what the present session does to it
  std::atomic<size_t> compiles = 0;
  std::mt19937_64 random{seed};

  // Borrows the machine.
  TuneCallbacks callbacks();
};

// Costs rise with the index: a lower index is the simpler config.
std::vector<Candidate> candidatesFor(const FakeMachine &machine);

// The report of a tuning that must not fail.
TuneReport tuned(FakeMachine &machine, const TuneOptions &options = {});

} // namespace nsa
