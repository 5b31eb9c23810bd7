// The configurations of a kernel, in the order of their cost, and what excludes them.
#include "compiler/language/types/Configurations.h"
#include "tests/unit/language_types/language_program.h"

#include <gtest/gtest.h>

namespace nsa::language {
namespace {

class Chosen {
public:
  explicit Chosen(std::string text, GivenValues given = {})
      : file("x.tile", "kernel x\n" + std::move(text)), tree(parse(file, diagnostics)),
        found(configurationsOf(*tree, {}, given, diagnostics)) {}

  std::string list() const {
    std::string text;
    for (const Configuration &configuration : found.list)
      text += textOf(configuration.choices) + ": " + std::to_string(configuration.cost) + "\n";
    return text;
  }
  static std::string textOf(const GivenValues &values) {
    std::string text;
    for (const auto &[name, value] : values)
      text += (text.empty() ? "" : " ") + name + "=" + value;
    return text;
  }

  Diagnostics diagnostics;
  SourceFile file;
  std::unique_ptr<SyntaxTree> tree;
  Configurations found;
};

TEST(LanguageConfigurations, AreThoseThatAreAdmittedTheCheapestFirst) {
  const Chosen chosen("fixed   width\n"
                      "choice  tile = 16 | 32 | 64\n"
                      "require tile <= width\n"
                      "choice  warps = 1 | 2\n"
                      "const   rows = tile / warps\n"
                      "require rows != 8\n"
                      "cost    100 - tile * warps\n",
                      {{"width", "32"}});
  EXPECT_EQ(chosen.diagnostics.toString(), "");
  EXPECT_EQ(chosen.list(), "tile=32 warps=2: 36\ntile=32 warps=1: 68\ntile=16 warps=1: 84\n");
}

TEST(LanguageConfigurations, AGivenChoiceIsNotTried) {
  EXPECT_EQ(Chosen("choice a = 1 | 2, b = 3 | 4", {{"a", "2"}}).list(), "b=3: 0\nb=4: 0\n");
  EXPECT_EQ(Chosen("axis row = 16").list(), ": 0\n");
}

// A `const` that has no value for an excluded combination is not computed for it.
TEST(LanguageConfigurations, ARequireStopsBeforeWhatItExcludes) {
  const Chosen chosen("choice a = 0 | 2\nrequire a > 0\nconst half = 8 / a\nrequire half == 4");
  EXPECT_EQ(chosen.diagnostics.toString(), "");
  EXPECT_EQ(chosen.list(), "a=2: 0\n");
}

TEST(LanguageConfigurations, TheLastRequireIsNamedWhereNoneIsLeft) {
  const Chosen chosen("choice a = 1 | 2, b = 1 | 2\nrequire a == 2\nrequire b > a\n");
  EXPECT_EQ(chosen.list(), "");
  ASSERT_TRUE(chosen.found.broken);
  EXPECT_EQ(chosen.found.broken->range.text(), "require b > a");
  EXPECT_EQ(Chosen::textOf(chosen.found.excluded), "a=2 b=2");
}

TEST(LanguageConfigurations, TooManyCombinationsAreRefused) {
  const std::string values = " = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16 | 17";
  const Chosen chosen("choice a" + values + "\nchoice b" + values + "\nchoice c" + values + "\nchoice d" + values +
                      "\n");
  EXPECT_EQ(chosen.list(), "");
  EXPECT_EQ(chosen.diagnostics.toString(),
            "x.tile:5:8: error: the choices multiply to more than 65536 combinations\n"
            "choice d" +
                values +
                "\n"
                "       ^\n"
                "hint: no tuner can measure so many: leave out values, or derive one choice from another by const\n");
}

TEST(LanguageConfigurations, AMistakeOfARequireIsReported) {
  EXPECT_EQ(Chosen("choice a = 1 | 2\nrequire a > none").diagnostics.toString(),
            "x.tile:3:13: error: 'none' is no constant\n"
            "require a > none\n"
            "            ^~~~\n");
}

} // namespace
} // namespace nsa::language
