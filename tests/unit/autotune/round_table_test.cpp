// The fit behind the tuner's decisions, on numbers whose truth is known.
#include "autotune/tuner/round_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace nsa {
namespace {

TEST(RoundTable, SeparatesCostsFromLevels) {
  // Levels that double, halve and drift; the third candidate leaves after three rounds, when all were still fast.
  const double cost[] = {1.0, 0.8, 2.0};
  RoundTable table(3);
  for (int round = 0; round < 12; ++round) {
    table.beginRound();
    const double level = (round % 3 == 1 ? 2.0 : 1.0) * (1 + 0.05 * round);
    for (size_t i = 0; i < (round < 3 ? 3u : 2u); ++i)
      table.record(i, cost[i] * level);
  }
  const RoundFit fit = table.fit();
  EXPECT_NEAR(std::exp(fit.cost[1] - fit.cost[0]), 0.8, 1e-12);
  EXPECT_NEAR(std::exp(fit.cost[2] - fit.cost[0]), 2.0, 1e-12);
  EXPECT_NEAR(fit.noise, 0, 1e-12);
  EXPECT_EQ(table.rounds(0), 12);
  EXPECT_EQ(table.rounds(2), 3);
}

TEST(RoundTable, EstimatesTheNoiseOfOneTime) {
  for (const size_t candidates : {2u, 5u, 32u})
    for (const double outliers : {0.0, 0.05}) {
      double sum = 0;
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        RoundTable table(candidates);
        for (int round = 0; round < 39; ++round) {
          table.beginRound();
          for (size_t i = 0; i < candidates; ++i)
            table.record(i, (1 + 0.02 * normal(random)) * (std::bernoulli_distribution(outliers)(random) ? 1.2 : 1.0));
        }
        sum += table.fit().noise;
      }
      // Outliers may raise it, most where a level is fitted to two times only; too little would claim differences.
      EXPECT_GT(sum / 20, 0.019) << candidates << " candidates, share of outliers " << outliers;
      EXPECT_LT(sum / 20, outliers ? 0.029 : 0.022) << candidates << " candidates, share of outliers " << outliers;
    }
}

// The promise of differenceError: differences of two costs scatter as it says, whether each run is by itself or what
// disturbs the runs of a session is the same for all of them.
TEST(RoundTable, DifferencesScatterAsPromised) {
  struct Case {
    int rounds, roundsOfSession;
    double sessionNoise;
  };
  for (const auto &[rounds, roundsOfSession, sessionNoise] :
       {Case{3, 39, 0}, {12, 39, 0}, {39, 39, 0}, {39, 1, 0}, {39, 1, 0.05}, {39, 4, 0.05}, {12, 3, 0.05}}) {
    double squares = 0, promised = 0;
    constexpr int kSessions = 400;
    for (uint64_t seed = 1; seed <= kSessions; ++seed) {
      std::mt19937_64 random(seed);
      std::normal_distribution<double> normal;
      RoundTable table(8);
      double placed[8] = {};
      for (int round = 0; round < rounds; ++round) {
        if (round % roundsOfSession == 0) {
          table.beginSession();
          for (double &place : placed)
            place = sessionNoise * normal(random);
        }
        table.beginRound();
        for (size_t i = 0; i < 8; ++i)
          table.record(i, (1 + placed[i]) * (1 + 0.02 * normal(random)));
      }
      const RoundFit fit = table.fit();
      squares += std::pow(fit.cost[1] - fit.cost[0], 2) / kSessions;
      promised += table.differenceError(fit, 1, 0) / kSessions;
    }
    EXPECT_NEAR(std::sqrt(squares) / promised, 1, 0.25)
        << rounds << " rounds in sessions of " << roundsOfSession << ", session noise " << sessionNoise;
  }
}

// One of two candidates runs at another speed in each session: the many that do not must not speak for it.
TEST(RoundTable, WhoDependsOnTheSessionIsJudgedByHisOwnTimes) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  RoundTable table(16);
  for (int round = 0; round < 39; ++round) {
    table.beginSession();
    table.beginRound();
    for (size_t i = 0; i < 16; ++i)
      table.record(i, (i == 3 ? 1 + 0.05 * normal(random) : 1.0) * (1 + 0.003 * normal(random)));
  }
  const RoundFit fit = table.fit();
  EXPECT_LT(fit.noise, 0.005);
  EXPECT_LT(table.differenceError(fit, 1, 0), 0.0015);
  EXPECT_GT(table.differenceError(fit, 3, 0), 0.005);
}

TEST(RoundTable, OptimisticIsTheBestOfThree) {
  RoundTable table(2);
  for (const double ms : {1.3, 1.0, 1.2}) {
    table.beginRound();
    table.record(0, 1.0);
    table.record(1, ms);
  }
  const RoundFit fit = table.fit();
  EXPECT_LT(fit.optimistic[1], fit.cost[1]);
  EXPECT_NEAR(table.medianMs(1), 1.2, 1e-12);
}

TEST(RoundTable, ForgetsRoundsAndCandidates) {
  RoundTable table(2);
  table.beginRound();
  table.record(0, 1);
  table.record(1, 2);
  table.beginRound();
  table.record(0, 7);
  table.abandonRound();
  EXPECT_EQ(table.rounds(0), 1);
  EXPECT_DOUBLE_EQ(table.medianMs(0), 1);
  EXPECT_NEAR(std::exp(table.fit().cost[1] - table.fit().cost[0]), 2, 1e-12);
  table.forget(1);
  EXPECT_EQ(table.rounds(1), 0);
  EXPECT_TRUE(std::isnan(table.fit().cost[1]));
  EXPECT_DOUBLE_EQ(table.fit().noise, 0.03) << "assumed while one round has shown none";
}

} // namespace
} // namespace nsa
