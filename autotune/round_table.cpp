#include "autotune/round_table.h"

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
// The mean of the middle half has so many times the standard error that the mean of all would have without outliers.
constexpr double kMidmeanError = 1.09;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The mean without the quarters at both ends: as deaf to disturbed runs as the median, with less noise of its own.
double midmean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = std::min((values.size() + 3) / 4, (values.size() - 1) / 2);
  return std::accumulate(values.begin() + static_cast<ptrdiff_t>(cut), values.end() - static_cast<ptrdiff_t>(cut),
                         0.0) /
         static_cast<double>(values.size() - 2 * cut);
}

double lowerQuartile(std::vector<double> values) {
  auto quarter = values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

} // namespace

double RoundFit::differenceError(int roundsA, int roundsB) const {
  return kMidmeanError * noise * std::sqrt(1.0 / roundsA + 1.0 / roundsB);
}

void RoundTable::beginRound() {
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
  std::vector<double> steps;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (std::vector<double> values = withoutLevels(i, rounds); !values.empty())
      fit.optimistic[i] = lowerQuartile(std::move(values));
    for (size_t round = 1; round < rounds; ++round) {
      const double step = columns[i][round] - level[round] - columns[i][round - 1] + level[round - 1];
      if (const size_t count = present[round]; !std::isnan(step) && count > 1)
        steps.push_back(std::fabs(step) * std::sqrt(static_cast<double>(count) / static_cast<double>(count - 1)));
    }
  }
  // Of a normal variable the median of |step| is 0.6745 sqrt(2) standard deviations of one value.
  fit.noise = steps.empty() ? kAssumedNoise : median(std::move(steps)) / (0.6745 * std::sqrt(2.0));
  return fit;
}

} // namespace nsa
