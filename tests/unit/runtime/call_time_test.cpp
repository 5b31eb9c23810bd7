// How long a call's checks take: each run makes them.
#include "runtime/engine/report/stopwatch.h"
#include "tests/unit/runtime/test_call.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

namespace nsa {
namespace {

// Of a call with all tensors of its operator.
double microsecondsOf(Operator op) {
  test::TestCall call(op, Layout::kDense);
  const CallRules rules(call.spec, call.maxima);
  constexpr int kCalls = 200, kRounds = 50;
  double least = std::numeric_limits<double>::max(); // of a round that nothing has disturbed
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    for (int i = 0; i < kCalls; ++i) {
      Call checked;
      EXPECT_TRUE(prepareCall(rules, call.bindings, checked).isOk());
    }
    least = std::min(least, watch.milliseconds() * 1e3 / kCalls);
  }
  return least;
}

// nsa_bwd has more than twice the tensors of nsa, and compares pairs of them.
TEST(CallTime, OfAGradientFollowsItsTensors) {
#if defined(NSA_ADDRESS_SANITIZER) || defined(NSA_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's time is not the library's";
#endif
  const double forward = microsecondsOf(Operator::kNsa), backward = microsecondsOf(Operator::kNsaBwd);
  EXPECT_LT(backward, 5 * forward) << "us";
}

} // namespace
} // namespace nsa
