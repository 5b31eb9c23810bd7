// What the interpreter of the tile language finds in programs that are wrong, and where it refuses to go on.
#include "tests/unit/tile_interpreter/tile_programs.h"

#include <stdexcept>

namespace nsa::test::tile {
namespace {

// The message with which the interpreter ends; "" where it does not.
std::string messageOf(const std::string &text) {
  TileCall call = callOf(1);
  try {
    interpret(text, call);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

TEST(TileFindings, LoadsAndStoresOutsideOfATensor) {
  TileCall call = callOf(3);
  TileFindings findings = interpret(program("let at = tile * 2 + iota(row)\nstore y[at] = load x[at]"), call);
  ASSERT_EQ(findings.outside.size(), 8u); // the four elements of the row behind the last one, loaded and stored
  EXPECT_EQ(findings.outside[0], "9:15: load x[at]: a load at 3 of 3");
  EXPECT_EQ(findings.outside[4], "9:1: store y[at] = load x[at]: a store at 3 of 3");
  findings = interpret(program(std::string(kRows) + "store y[at] = load x[at - 1]"), call);
  ASSERT_EQ(findings.outside.size(), 4u);
  EXPECT_NE(findings.outside[0].find("a load at -1 of 3"), std::string::npos);
  findings = interpret(program(std::string(kRows) + "store y[at] = load x[at - 1 if at > 0]"), call);
  EXPECT_TRUE(findings.outside.empty());
}

TEST(TileFindings, ASideThatIsNotChosenReadsNothing) {
  TileCall call = callOf(3);
  const TileFindings findings =
      interpret(program(std::string(kRows) + "store y[at] = rows > 100 ? load x[at + 100] : load x[at]"), call);
  EXPECT_TRUE(findings.outside.empty());
  EXPECT_EQ(valuesOf(call.tensors.at("y")), valuesOf(call.tensors.at("x")));
}

TEST(TileFindings, TwoRowsAtOnePlace) {
  TileCall call = callOf(2);
  const TileFindings findings = interpret(program(std::string(kRows) + "store unique y[at / 2] = load x[at]"), call);
  ASSERT_EQ(findings.collisions.size(), 4u);
  EXPECT_EQ(findings.collisions[0], "9:1: store unique y[at / 2] = load x[at]: two rows store to element 0 of y");
}

TEST(TileFindings, TwoProgramsAtOnePlace) {
  TileCall call = callOf(4);
  const TileFindings findings = interpret(program("let at = iota(row) below rows\nstore y[at] = load x[at]"), call);
  ASSERT_EQ(findings.collisions.size(), 8u);
  EXPECT_NE(findings.collisions[0].find("the programs 0 and 1 store to element 0 of y"), std::string::npos);
}

// One program may store to a place again.
TEST(TileFindings, AProgramMayStoreTwice) {
  TileCall call = callOf(2);
  const TileFindings findings =
      interpret(program(std::string(kRows) + "store y[at] = 1.0\nstore y[at] = load x[at]"), call);
  EXPECT_TRUE(findings.collisions.empty());
  EXPECT_EQ(findings.stored, 16);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), valuesOf(call.tensors.at("x")));
}

TEST(TileFindings, ReportsAreKept) {
  TileCall call = callOf(3);
  const TileFindings findings = interpret(program("report wrong at tile * 10 if tile == 1", "code wrong = 6"), call);
  EXPECT_EQ(findings.reports, std::vector<std::string>{"6 at 10"});
}

TEST(TileFindings, WhatItCannotGoOnWithHasItsPlace) {
  const auto ends = [](const std::string &body, const std::string &message) {
    const std::string found = messageOf(program(body));
    EXPECT_NE(found.find(message), std::string::npos) << body << "\n" << found;
  };
  ends("let a = load x[iota(two)]\nstore y[0] = a", "a value that is no tile");
  ends("store y[0] = load z[0]", "program.tile:8:19: is no tensor");
  ends("store y[0] = 1 + 1.0 * tile", "program.tile:8:18: an operation of two element types: 1.0 * tile");
  ends("let a = top(3) over row", "the interpreter has no function top");
  ends("if sum(load x[iota(row)] * 0.1) over row > 1.0 {\n  store y[0] = 1.0\n}", "is no condition");
  EXPECT_NE(messageOf("kernel p\nlet = 3").find("error:"), std::string::npos);
  EXPECT_EQ(messageOf("kernel p\nimport softmax"), "the call has no library softmax");
  EXPECT_EQ(messageOf("kernel p\nchoice a = 1 | 2\nrequire a == 3"), "no configuration is admitted");
}

} // namespace
} // namespace nsa::test::tile
