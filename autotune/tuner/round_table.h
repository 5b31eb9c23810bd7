// What the tuner has measured: one time for each candidate that took part in a round. `fit` fits this formula robustly:
//   log time = cost of the candidate + level of the round + noise.
// The level of a round contains the drift of clock rates and temperature between rounds, so this drift does not change
// the fitted costs of the candidates. The rounds of measurement are grouped in sessions, and each session gives the
// kernels newly allocated memory. The address of a candidate's data in memory has the same effect on its time in all
// rounds of a session, and another effect in the next session. The estimated error of a candidate's cost also takes
// into account how much the sessions differ from each other. docs/tuning.md gives the reasons.
// Thread-safety: one thread at a time may use a RoundTable; `fit` is a pure function of the recorded times.
#pragma once

#include <cstddef>
#include <vector>

namespace nsa {

// Costs and levels are natural logarithms of milliseconds, so a difference of two costs is a ratio of times. NaN: not
// measured.
struct RoundFit {
  std::vector<double> cost; // of each candidate
  // For each candidate, the lower quartile of its log times after the levels of the rounds are subtracted. With three
  // rounds the lower quartile is the smallest of the three values.
  std::vector<double> optimistic;
  double noise = 0;        // standard deviation of one time from the sum of its cost and level
  double sessionNoise = 0; // standard deviation of a session's mean; 0 while there is one session
};

class RoundTable {
public:
  explicit RoundTable(size_t candidates) : columns(candidates) {}

  // Begins a session. The rounds that are recorded after this call belong to the new session.
  void beginSession() { ++session; }
  void beginRound();
  // Records a candidate's time in the round that was begun last. The time must be positive and finite.
  void record(size_t candidate, double milliseconds);
  // Forgets the present round. An interrupted round is abandoned, because its remaining candidates would run under
  // other conditions than the candidates that were measured already.
  void abandonRound();
  // Forgets the times of a candidate that can no longer run.
  void forget(size_t candidate);

  int rounds(size_t candidate) const;
  double medianMs(size_t candidate) const;
  RoundFit fit() const;
  // The standard error of the difference between the fitted costs of two candidates. The standard error is computed
  // from the noise of all candidates, or from the noise of the two compared candidates where that is larger.
  double differenceError(const RoundFit &fit, size_t a, size_t b) const;

private:
  int sessions(size_t candidate) const;
  // Returns for each session the mean of its values, where NaN means that a session has no value.
  std::vector<double> sessionMeans(const std::vector<double> &byRound) const;

  std::vector<std::vector<double>> columns; // [candidate][round]
  std::vector<int> sessionOf;               // [round]
  int session = 0;
};

} // namespace nsa
