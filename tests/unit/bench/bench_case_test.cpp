// Which queries are compared with exact results: the first and the last, ascending, fewer where each is dearer.
#include "bench/measure/bench_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace nsa::bench {
namespace {

std::vector<int64_t> queriesOf(Operator op, int64_t tokens) {
  Spec spec;
  spec.op = op;
  spec.window = 512;
  const BenchCase benchCase = promptCase("", spec, tokens);
  return checkedQueries(benchCase.spec, benchCase.maxima);
}

TEST(CheckedQueries, AreFewerTheMoreKeysEachSees) {
  EXPECT_EQ(queriesOf(Operator::kDense, 1024).size(), 64u);
  EXPECT_EQ(queriesOf(Operator::kDense, 16384).size(), 8u);
  EXPECT_EQ(queriesOf(Operator::kDense, 65536).size(), 4u);
  EXPECT_EQ(queriesOf(Operator::kWindow, 65536).size(), 64u) << "a window never sees more than its width";
  EXPECT_EQ(queriesOf(Operator::kCmp, 65536).size(), 32u) << "one key for 16 tokens";
}

TEST(CheckedQueries, AreOnesThatExistEachOnce) {
  for (const int64_t tokens : {1, 2, 5, 63, 64, 65, 4096}) {
    const std::vector<int64_t> queries = queriesOf(Operator::kDense, tokens);
    ASSERT_FALSE(queries.empty()) << tokens;
    EXPECT_EQ(queries.front(), 0) << tokens;
    EXPECT_EQ(queries.back(), tokens - 1);
    EXPECT_EQ(std::adjacent_find(queries.begin(), queries.end(), std::greater_equal<>()), queries.end()) << tokens;
  }
}

} // namespace
} // namespace nsa::bench
