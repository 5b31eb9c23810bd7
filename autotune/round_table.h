// What the tuner has measured: one time for each candidate that took part in a round, and the robust fit
//   log time = cost of the candidate + level of the round + noise
// that separates the candidates from drifting clocks and temperature. docs/tuning.md says why this one.
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

  // Standard error of the difference of two costs, from so many rounds each.
  double differenceError(int roundsA, int roundsB) const;
};

class RoundTable {
public:
  explicit RoundTable(size_t candidates) : columns(candidates) {}

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

private:
  std::vector<std::vector<double>> columns; // [candidate][round]
};

} // namespace nsa
