// Candidate enumeration: the product of choices, what `require` and the target remove, and the order.
#include "compiler/render/Candidates.h"

#include <gtest/gtest.h>

using namespace nsa;

namespace {

Result<std::vector<TemplateCandidate>>
enumerate(const std::string &lines, const std::map<std::string, std::string> &pinned = {}, ResourceLimits limits = {}) {
  Result<TemplateHeader> header =
      readCudaHeader("//! kernel t serves window\n//! grid 1, 1, 1\n//! param i32 n\n" + lines, "t");
  if (!header)
    return header.status();
  Values given;
  given.set("op", std::string("window"));
  given.set("group", 8);
  given.set("qk_dim", 64);
  given.set("dtype", std::string("bf16"));
  given.set("cpu", 0);
  return enumerateCandidates(*header, given, pinned, limits);
}

std::vector<std::string> configs(const Result<std::vector<TemplateCandidate>> &candidates) {
  std::vector<std::string> texts;
  if (candidates)
    for (const TemplateCandidate &candidate : *candidates)
      texts.push_back(candidate.configText);
  return texts;
}

TEST(Candidates, AreTheProductCutByRequireOrderedByCost) {
  Result<std::vector<TemplateCandidate>> candidates = enumerate("//! threads 32\n"
                                                                "//! choice a = 1 | 2 | 3\n"
                                                                "//! choice b = 10 | 20\n"
                                                                "//! const sum = a * 10 + b\n"
                                                                "//! require sum != 30\n"
                                                                "//! cost 100 - sum\n");
  ASSERT_TRUE(candidates) << candidates.status().toString();
  EXPECT_EQ(configs(candidates), (std::vector<std::string>{"a=3 b=20", "a=2 b=20", "a=3 b=10", "a=1 b=10"}));
  EXPECT_EQ(candidates->front().cost, 50);
  int64_t sum = 0;
  EXPECT_TRUE(candidates->front().values.lookup("sum", sum));
  EXPECT_EQ(sum, 50);
}

TEST(Candidates, EqualCostsAreOrderedByText) {
  Result<std::vector<TemplateCandidate>> candidates = enumerate("//! threads 32\n//! choice a = 3 | 1 | 2\n");
  EXPECT_EQ(configs(candidates), (std::vector<std::string>{"a=1", "a=2", "a=3"}));
}

TEST(Candidates, WithoutChoicesThereIsOne) {
  Result<std::vector<TemplateCandidate>> candidates = enumerate("//! fixed group\n//! threads 4 * group\n");
  ASSERT_TRUE(candidates) << candidates.status().toString();
  ASSERT_EQ(candidates->size(), 1u);
  EXPECT_EQ(candidates->front().configText, "");
  EXPECT_EQ(candidates->front().threads, 32);
}

// The enumerated problem is one of `window`; `dense` stands for any other operator of the template.
TEST(Candidates, AValueOfAnotherOperatorIsZero) {
  const std::string header = "//! kernel t serves window, dense\n//! grid 1, 1, 1\n//! threads 1\n//! param i32 n\n";
  auto run = [&](const std::string &fixed, const char *op) {
    Result<TemplateHeader> parsed = readCudaHeader(header + fixed + "//! const wide = span + 7\n", "t");
    EXPECT_TRUE(parsed) << parsed.status().toString();
    Values given;
    given.set("op", std::string(op));
    return enumerateCandidates(*parsed, given, {}, {});
  };
  auto candidates = run("//! fixed span when op == dense\n", "window");
  ASSERT_TRUE(candidates) << candidates.status().toString();
  int64_t wide = 0;
  EXPECT_TRUE(candidates->front().values.lookup("wide", wide));
  EXPECT_EQ(wide, 7);

  for (const char *fixed :
       {"//! fixed span when op == dense\n", "//! fixed span when op == dense || op == window\n", "//! fixed span\n"}) {
    auto missing = run(fixed, "dense");
    ASSERT_FALSE(missing) << fixed;
    EXPECT_EQ(missing.status().error().field, "span");
  }
}

TEST(Candidates, OperatorsAndDtypesCompareByName) {
  EXPECT_TRUE(enumerate("//! fixed dtype\n//! threads 1\n//! require op == window && dtype == bf16\n"));
  EXPECT_FALSE(enumerate("//! threads 1\n//! require op == dense\n"));
}

TEST(Candidates, AnEarlierRequireGuardsALaterLet) {
  Result<std::vector<TemplateCandidate>> candidates =
      enumerate("//! threads 1\n//! choice a = 0 | 2\n//! require a != 0\n//! const inverse = 100 / a\n");
  EXPECT_EQ(configs(candidates), std::vector<std::string>{"a=2"});
}

TEST(Candidates, PinnedChoicesNarrow) {
  const std::string lines = "//! threads 1\n//! choice a = 1 | 2\n//! choice b = 3 | 4\n";
  EXPECT_EQ(configs(enumerate(lines, {{"b", "4"}})), (std::vector<std::string>{"a=1 b=4", "a=2 b=4"}));

  Result<std::vector<TemplateCandidate>> wrongValue = enumerate(lines, {{"b", "5"}});
  ASSERT_FALSE(wrongValue);
  EXPECT_EQ(wrongValue.status().toString(), "invalid argument: b = 5: must be one of 3 | 4");
  Result<std::vector<TemplateCandidate>> noNumber = enumerate(lines, {{"b", "4x"}});
  ASSERT_FALSE(noNumber);
  EXPECT_EQ(noNumber.status().code(), ErrorCode::kInvalidArgument);
  Result<std::vector<TemplateCandidate>> unknown = enumerate(lines, {{"c", "1"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().error().field, "c");
  EXPECT_NE(unknown.status().error().hint.find("a, b"), std::string::npos);
}

TEST(Candidates, NothingAdmissibleNamesTheRequireThatRemovedTheLast) {
  Result<std::vector<TemplateCandidate>> candidates = enumerate("//! threads 1\n"
                                                                "//! fixed qk_dim\n"
                                                                "//! choice a = 1 | 2 | 4\n"
                                                                "//! require a > 1\n"
                                                                "//! require a * qk_dim > 1000\n");
  ASSERT_FALSE(candidates);
  ErrorInfo error = candidates.status().error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.value, "a=2 qk_dim=64");
  EXPECT_NE(error.rule.find("no config of template t is admissible"), std::string::npos);
  EXPECT_NE(error.rule.find("t:8: require a * qk_dim > 1000"), std::string::npos) << error.rule;
}

TEST(Candidates, TheTargetLimitsThreadsAndSharedMemory) {
  ResourceLimits limits{1024, 100 * 1024};
  EXPECT_EQ(configs(enumerate("//! choice w = 1 | 32 | 64\n//! threads 32 * w\n", {}, limits)),
            (std::vector<std::string>{"w=1", "w=32"}));
  Result<std::vector<TemplateCandidate>> tooMany = enumerate("//! choice w = 0 | 64\n//! threads 32 * w\n", {}, limits);
  ASSERT_FALSE(tooMany);
  EXPECT_NE(tooMany.status().error().rule.find("must be 1 to 1024"), std::string::npos);

  const std::string cuda = "//! choice s = 1 | 2\n//! threads 32\n//! shared s * 60000\n";
  Result<std::vector<TemplateCandidate>> shared = enumerate(cuda, {}, limits);
  EXPECT_EQ(configs(shared), std::vector<std::string>{"s=1"});
  EXPECT_EQ(shared->front().sharedBytes, 60000);
  Result<std::vector<TemplateCandidate>> tooMuch = enumerate(cuda, {{"s", "2"}}, limits);
  ASSERT_FALSE(tooMuch);
  EXPECT_EQ(tooMuch.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(tooMuch.status().error().rule.find("120000"), std::string::npos) << tooMuch.status().toString();
  EXPECT_NE(tooMuch.status().error().rule.find("102400"), std::string::npos);
}

TEST(Candidates, ArithmeticFaultsNameTheLine) {
  Result<std::vector<TemplateCandidate>> overflow =
      enumerate("//! threads 1\n//! const big = 9223372036854775807\n//! require big + big > 0\n");
  ASSERT_FALSE(overflow);
  EXPECT_EQ(overflow.status().error().value, "t:6");
  EXPECT_NE(overflow.status().error().rule.find("overflows"), std::string::npos);
  Result<std::vector<TemplateCandidate>> division = enumerate("//! threads 1\n//! choice a = 0\n//! cost 1 / a\n");
  ASSERT_FALSE(division);
  EXPECT_EQ(division.status().error().value, "t:6");
  EXPECT_NE(division.status().error().rule.find("divides by zero"), std::string::npos);
}

TEST(Candidates, AnExplodingProductIsRefused) {
  std::string lines = "//! threads 1\n";
  for (char c = 'a'; c <= 'q'; ++c)
    lines += std::string("//! choice ") + c + " = 1 | 2\n";
  Result<std::vector<TemplateCandidate>> candidates = enumerate(lines);
  ASSERT_FALSE(candidates);
  EXPECT_NE(candidates.status().error().rule.find("65536"), std::string::npos);
}

TEST(Candidates, AMissingProblemValueIsNamed) {
  Result<std::vector<TemplateCandidate>> candidates = enumerate("//! fixed v_dim\n//! threads 1\n");
  ASSERT_FALSE(candidates);
  EXPECT_EQ(candidates.status().error().field, "v_dim");
}

} // namespace
