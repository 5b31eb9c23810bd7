// The main of every GoogleTest executable. CTest sees one exit code per executable, so skips need a code of
// their own: 77 when nothing failed and every test skipped (`--any-skip-skips`: at least one skipped). A
// regular expression on the output would do the same but also turns failures beside a skip into skips.
// A filter that leaves no test is a failure: nothing would have been tested.
#include "tests/harness/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// GoogleTest's JSON report says that a test was skipped, but not why: each skipped test gets its reason as a property.
class SkipReasons : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult &result) override {
    if (result.skipped())
      testing::Test::RecordProperty("skip_reason", result.message());
  }
};

// A failure is told with the seed that the test drew, so that the output of tests that pass need not be kept.
class FailedSeeds : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo &) override { nsa::test::drawnSeed = -1; }
  void OnTestPartResult(const testing::TestPartResult &result) override {
    if (result.failed() && nsa::test::drawnSeed >= 0)
      std::printf("NSA_TEST_SEED=%lld\n", static_cast<long long>(nsa::test::drawnSeed));
  }
};

// NSA_TEST_TURNS=3: only every third test case runs, and the seed of the run says which. GoogleTest tells the part.
void takeTurn() {
  const char *turns = std::getenv("NSA_TEST_TURNS");
  if (!turns)
    return;
  const unsigned long count = std::strtoul(turns, nullptr, 10);
  setenv("GTEST_TOTAL_SHARDS", turns, 1);
  setenv("GTEST_SHARD_INDEX", std::to_string(nsa::test::freshSeed() % std::max(count, 1UL)).c_str(), 1);
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners &listeners = testing::UnitTest::GetInstance()->listeners();
  listeners.Append(new SkipReasons); // GoogleTest's own from here
  listeners.Append(new FailedSeeds);
  takeTurn();
  bool anySkipSkips = argc > 1 && std::strcmp(argv[1], "--any-skip-skips") == 0;
  int result = RUN_ALL_TESTS();
  const testing::UnitTest &tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
    std::printf("the filter '%s' leaves no test\n", testing::GTEST_FLAG(filter).c_str());
    return 1;
  }
  int skipped = tests.skipped_test_count();
  if (skipped > 0)
    std::printf("%d of %d tests skipped\n", skipped, tests.test_to_run_count());
  if (result != 0 || skipped == 0)
    return result;
  return anySkipSkips || tests.successful_test_count() == 0 ? 77 : 0;
}
