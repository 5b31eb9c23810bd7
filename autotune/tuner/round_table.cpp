#include "autotune/tuner/round_table.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace nsa {

namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
// The levels begin with the costs known so far and are final after few sweeps; more do not change a digit that counts.
constexpr int kSweeps = 4;
// Assumed until two rounds have shown the machine's own.
constexpr double kAssumedNoise = 0.03;
// Fewer differences say too little of how two candidates differ from session to session.
constexpr size_t kEnoughSessions = 8;
// The mean of the middle half has so many times the standard error that the mean of all would have without outliers.
constexpr double kMidmeanError = 1.09;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// How many values a midmean leaves out at each end.
size_t cutOf(size_t count) { return std::min((count + 3) / 4, (count - 1) / 2); }

// The mean without the quarters at both ends: as deaf to disturbed runs as the median, with less noise of its own.
double midmean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = cutOf(values.size());
  return std::accumulate(values.begin() + static_cast<ptrdiff_t>(cut), values.end() - static_cast<ptrdiff_t>(cut),
                         0.0) /
         static_cast<double>(values.size() - 2 * cut);
}

// Standard error of the midmean, from the values alone (Tukey and McLaughlin: by the winsorized sum of squares).
double midmeanError(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = cutOf(values.size()), kept = values.size() - 2 * cut;
  std::fill(values.begin(), values.begin() + static_cast<ptrdiff_t>(cut), values[cut]);
  std::fill(values.end() - static_cast<ptrdiff_t>(cut), values.end(), values[values.size() - cut - 1]);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (static_cast<double>(kept) * static_cast<double>(kept - 1)));
}

double lowerQuartile(std::vector<double> values) {
  auto quarter = values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

} // namespace

void RoundTable::beginRound() {
  sessionOf.push_back(session);
  for (std::vector<double> &column : columns)
    column.push_back(kNotMeasured);
}

void RoundTable::record(size_t candidate, double milliseconds) {
  assert(milliseconds > 0 && std::isfinite(milliseconds));
  columns[candidate].back() = std::log(milliseconds);
}

void RoundTable::abandonRound() {
  for (std::vector<double> &column : columns)
    column.pop_back();
  sessionOf.pop_back();
}

void RoundTable::forget(size_t candidate) {
  std::fill(columns[candidate].begin(), columns[candidate].end(), kNotMeasured);
}

int RoundTable::rounds(size_t candidate) const {
  return static_cast<int>(std::count_if(columns[candidate].begin(), columns[candidate].end(),
                                        [](double value) { return !std::isnan(value); }));
}

double RoundTable::medianMs(size_t candidate) const {
  std::vector<double> own;
  std::copy_if(columns[candidate].begin(), columns[candidate].end(), std::back_inserter(own),
               [](double value) { return !std::isnan(value); });
  return std::exp(median(std::move(own)));
}

std::vector<double> RoundTable::sessionMeans(const std::vector<double> &byRound) const {
  std::vector<double> means, own;
  for (size_t round = 0; round < byRound.size(); ++round) {
    if (!std::isnan(byRound[round]))
      own.push_back(byRound[round]);
    if (round + 1 == byRound.size() || sessionOf[round + 1] != sessionOf[round]) {
      if (!own.empty())
        means.push_back(midmean(std::move(own)));
      own.clear();
    }
  }
  return means;
}

int RoundTable::sessions(size_t candidate) const { return static_cast<int>(sessionMeans(columns[candidate]).size()); }

double RoundTable::differenceError(const RoundFit &fit, size_t a, size_t b) const {
  const auto pooled = [](double noise, int countA, int countB) {
    return kMidmeanError * noise * std::sqrt(1.0 / countA + 1.0 / countB);
  };
  double error = std::max(pooled(fit.noise, rounds(a), rounds(b)), pooled(fit.sessionNoise, sessions(a), sessions(b)));
  // The level of a round drops out of the difference, and what a session did to one of the two does not.
  std::vector<double> differences(sessionOf.size());
  for (size_t round = 0; round < differences.size(); ++round)
    differences[round] = columns[a][round] - columns[b][round];
  if (std::vector<double> means = sessionMeans(differences); means.size() >= kEnoughSessions)
    error = std::max(error, midmeanError(std::move(means)));
  return error;
}

RoundFit RoundTable::fit() const {
  const size_t rounds = columns.empty() ? 0 : columns.front().size();
  RoundFit fit;
  fit.cost.assign(columns.size(), kNotMeasured);
  fit.optimistic.assign(columns.size(), kNotMeasured);
  std::vector<double> level(rounds, 0);

  // What is left of a candidate's first `count` rounds without their levels.
  auto withoutLevels = [&](size_t candidate, size_t count) {
    std::vector<double> values;
    for (size_t round = 0; round < count; ++round)
      if (!std::isnan(columns[candidate][round]))
        values.push_back(columns[candidate][round] - level[round]);
    return values;
  };
  auto fitLevel = [&](size_t round) {
    std::vector<double> values;
    for (size_t i = 0; i < columns.size(); ++i)
      if (!std::isnan(columns[i][round]) && !std::isnan(fit.cost[i]))
        values.push_back(columns[i][round] - fit.cost[i]);
    if (!values.empty())
      level[round] = median(std::move(values));
  };
  auto fitCosts = [&](size_t count) {
    for (size_t i = 0; i < columns.size(); ++i)
      if (std::vector<double> values = withoutLevels(i, count); !values.empty())
        fit.cost[i] = midmean(std::move(values));
  };

  // Round by round first: a later round's level is seen only through those still in the race, so it must begin with
  // costs that the earlier rounds have set, or drift would be taken for cost.
  for (size_t round = 0; round < rounds; ++round) {
    fitLevel(round);
    fitCosts(round + 1);
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t round = 0; round < rounds; ++round)
      fitLevel(round);
    fitCosts(rounds);
  }

  // Noise from the steps between a candidate's neighbouring rounds, in which its cost drops out. A level that was
  // fitted to n times has taken an n-th of their variance with it.
  std::vector<size_t> present(rounds, 0);
  for (const std::vector<double> &column : columns)
    for (size_t round = 0; round < rounds; ++round)
      present[round] += !std::isnan(column[round]);
  std::vector<double> steps, sessionSteps;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (std::vector<double> values = withoutLevels(i, rounds); !values.empty())
      fit.optimistic[i] = lowerQuartile(std::move(values));
    std::vector<double> byRound(rounds);
    for (size_t round = 0; round < rounds; ++round)
      byRound[round] = columns[i][round] - level[round];
    const std::vector<double> means = sessionMeans(byRound);
    for (size_t next = 1; next < means.size(); ++next)
      sessionSteps.push_back(std::fabs(means[next] - means[next - 1]));
    for (size_t round = 1; round < rounds; ++round) {
      const double step = columns[i][round] - level[round] - columns[i][round - 1] + level[round - 1];
      if (const size_t count = present[round]; !std::isnan(step) && count > 1)
        steps.push_back(std::fabs(step) * std::sqrt(static_cast<double>(count) / static_cast<double>(count - 1)));
    }
  }
  // Of a normal variable the median of |step| is 0.6745 sqrt(2) standard deviations of one value.
  const double perDeviation = 0.6745 * std::sqrt(2.0);
  fit.noise = steps.empty() ? kAssumedNoise : median(std::move(steps)) / perDeviation;
  fit.sessionNoise = sessionSteps.empty() ? 0 : median(std::move(sessionSteps)) / perDeviation;
  return fit;
}

} // namespace nsa
