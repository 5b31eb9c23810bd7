// What the tuner has measured: one time for each candidate that took part in a round, and the robust fit
//   log time = cost of the candidate + level of the round + noise
// that separates the candidates from drifting clocks and temperature. Rounds stand in sessions, each with memory of its
// own: what a place in memory does to a candidate is the same in all rounds of a session and another one in the next,
// so errors are judged by how sessions differ as well. docs/tuning.md says why this way.
// Thread-safety: one thread at a time; `fit` is a pure function of what was recorded.
#pragma once

#include <cstddef>
#include <vector>

namespace nsa {

// All values are natural logarithms of milliseconds, so a difference is a ratio. NaN: not measured.
struct RoundFit {
  std::vector<double> cost;       // of each candidate
  std::vector<double> optimistic; // of each candidate: what a quarter of its rounds stayed below; of three the best
  double noise = 0;               // standard deviation of one time about its cost and level
  double sessionNoise = 0;        // the same of a session's mean; 0 while there is one session
};

class RoundTable {
public:
  explicit RoundTable(size_t candidates) : columns(candidates) {}

  // The rounds from here on are of another session.
  void beginSession() { ++session; }
  void beginRound();
  // The time of a candidate in the present round; positive and finite.
  void record(size_t candidate, double milliseconds);
  // Forgets the present round: it was cut off, and part of the candidates would have run in other conditions.
  void abandonRound();
  // Forgets a candidate: it stopped running.
  void forget(size_t candidate);

  int rounds(size_t candidate) const;
  double medianMs(size_t candidate) const;
  RoundFit fit() const;
  // Standard error of the difference of two measured costs of `fit`: by the noise of all candidates, or by what these
  // two have shown where that is more.
  double differenceError(const RoundFit &fit, size_t a, size_t b) const;

private:
  int sessions(size_t candidate) const;
  // The mean of each session's values, in which NaN is none.
  std::vector<double> sessionMeans(const std::vector<double> &byRound) const;

  std::vector<std::vector<double>> columns; // [candidate][round]
  std::vector<int> sessionOf;               // [round]
  int session = 0;
};

} // namespace nsa
