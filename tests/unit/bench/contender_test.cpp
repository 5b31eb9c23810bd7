// Turns: each contender runs once in a round, none always follows the same other one, and a contender that fails
// leaves.
#include "bench/measure/contender.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace nsa::bench {
namespace {

class Recorder final : public Contender {
public:
  Recorder(std::string name, std::string &log, int failsAt) : text(std::move(name)), log(log), failsAt(failsAt) {}
  const std::string &name() const override { return text; }
  Result<double> sample() override {
    log += text;
    if (++samples == failsAt)
      return Status::error(ErrorCode::kDeviceError, "broke off");
    return static_cast<double>(samples);
  }
  nlohmann::ordered_json facts() const override { return {}; }

private:
  std::string text;
  std::string &log;
  int failsAt, samples = 0;
};

struct Turns {
  std::string log;
  std::vector<std::unique_ptr<Recorder>> recorders;

  std::vector<Result<Times>> measure(int rounds, int failsAt = 0) {
    std::vector<Contender *> contenders;
    for (const char *name : {"a", "b", "c"}) {
      recorders.push_back(std::make_unique<Recorder>(name, log, *name == 'b' ? failsAt : 0));
      contenders.push_back(recorders.back().get());
    }
    return measureInTurns(contenders, rounds);
  }
};

TEST(MeasureInTurns, EachRoundHasEveryoneOnceInAnotherOrder) {
  Turns turns;
  const std::vector<Result<Times>> times = turns.measure(30);
  ASSERT_EQ(turns.log.size(), 90u);
  std::set<std::string> orders;
  for (size_t round = 0; round < 30; ++round) {
    const std::string order = turns.log.substr(3 * round, 3);
    EXPECT_EQ(std::set<char>(order.begin(), order.end()).size(), 3u) << order;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6u) << "of three";
  for (const Result<Times> &one : times) {
    ASSERT_TRUE(one);
    EXPECT_EQ(one->fastestMs, 1);
    EXPECT_NEAR(one->medianMs, 15.5, 0.5);
    EXPECT_EQ(one->slowestMs, 30);
  }
}

TEST(MeasureInTurns, WhoFailsLeavesAndTheOthersGoOn) {
  Turns turns;
  const std::vector<Result<Times>> times = turns.measure(10, 4);
  EXPECT_EQ(turns.log.size(), 10u + 4 + 10);
  EXPECT_TRUE(times[0]);
  ASSERT_FALSE(times[1]);
  EXPECT_NE(times[1].status().toString().find("broke off"), std::string::npos);
  EXPECT_EQ(times[2]->slowestMs, 10);
}

} // namespace
} // namespace nsa::bench
