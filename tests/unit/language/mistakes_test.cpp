// Every syntactic mistake and what is said about it, word for word and with the caret: the cases are in mistakes.txt.
#include "tests/unit/language/mistake_cases.h"
#include "tests/unit/language/parsed.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace nsa::language {
namespace {

constexpr const char *kMistakes = NSA_TEST_PROJECT "/tests/unit/language/mistakes.txt";

class MistakeCases : public testing::TestWithParam<Mistake> {};

TEST_P(MistakeCases, AreSaidWordForWord) { EXPECT_EQ(Parsed(GetParam().program).messages(), GetParam().messages); }

INSTANTIATE_TEST_SUITE_P(, MistakeCases, testing::ValuesIn(readMistakes(kMistakes)),
                         [](const testing::TestParamInfo<Mistake> &info) { return info.param.title; });

TEST(MistakesFile, HasEachCaseOnce) {
  std::set<std::string> names, programs;
  for (const Mistake &mistake : readMistakes(kMistakes)) {
    EXPECT_TRUE(names.insert(mistake.title).second) << mistake.title;
    EXPECT_TRUE(programs.insert(mistake.program).second) << mistake.title;
    EXPECT_TRUE(mistake.messages.starts_with("x.tile:")) << mistake.title;
  }
  EXPECT_GE(names.size(), 60U);
}

// A long line is shown in part.
TEST(Mistakes, DepthIsLimited) {
  const std::string open(79, '(');
  EXPECT_EQ(Parsed("kernel x\nlet a = " + std::string(1000, '(')).messages(),
            "x.tile:2:265: error: nested more than 256 deep\n.. " + open + "(" + open + "( ..\n" +
                std::string(83, ' ') + "^\n");
  std::string deep;
  for (int i = 0; i < 300; ++i)
    deep += "if a {\n";
  EXPECT_EQ(Parsed("kernel x\n" + deep).messages(), "x.tile:130:1: error: nested more than 256 deep\nif a {\n^~\n");
}

TEST(Mistakes, NoMoreThanTwentyAreReported) {
  std::string text = "kernel x\n";
  for (int i = 0; i < 30; ++i)
    text += "let = 1\n";
  const Parsed parsed(text);
  EXPECT_EQ(parsed.diagnostics.list().size(), 20U);
  EXPECT_TRUE(parsed.diagnostics.isFull());
  EXPECT_TRUE(parsed.messages().ends_with("too many errors: what comes behind them was not looked at\n"));
}

// What was read beside a mistake is in the tree.
TEST(Mistakes, TheRestOfAFileIsRead) {
  const Parsed parsed("kernel x\nlet a = )\nlet b = 1\nconst c =\naxis d = 2\n");
  EXPECT_EQ(parsed.diagnostics.errorCount(), 2U);
  ASSERT_EQ(parsed.tree->items.size(), 3U);
  EXPECT_EQ(parsed.tree->items[1]->range.text(), "let b = 1");
  EXPECT_EQ(parsed.tree->items[2]->range.text(), "axis d = 2");
}

// The time is not worse than proportional: each of these takes seconds where something is looked at again and again.
TEST(Mistakes, LargeTextsOfOneMistakeEndSoon) {
  constexpr size_t kBytes = 500'000;
  const auto repeated = [](std::string begin, std::string_view piece) {
    while (begin.size() < kBytes)
      begin += piece;
    return begin;
  };
  for (const std::string_view piece : {"(", "[", "{", "}", ")", "(\n", "-", "a?", "a.b", "$"}) {
    EXPECT_EQ(Parsed(repeated("kernel x\nlet a = ", piece)).diagnostics.errorCount(), 1U) << piece;
  }
}

} // namespace
} // namespace nsa::language
