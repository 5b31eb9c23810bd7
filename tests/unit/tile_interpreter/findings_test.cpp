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

std::vector<Fault> faultsOf(int64_t rows, const std::string &body, const std::string &declarations = "") {
  TileCall call = callOf(rows);
  return interpret(program(body, declarations), call).faults;
}

void expectFault(const std::vector<Fault> &faults, Fault::Kind kind, int64_t count, const std::string &message) {
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].kind, kind);
  EXPECT_EQ(faults[0].count, count);
  EXPECT_EQ(faults[0].message, message);
}

TEST(TileFindings, LoadsAndStoresOutsideOfATensor) {
  // The four elements of the row behind the last one, loaded and stored.
  const std::vector<Fault> faults = faultsOf(3, "let at = tile * 2 + iota(row)\nstore y[at] = load x[at]");
  ASSERT_EQ(faults.size(), 2U);
  expectFault({faults[0]}, Fault::Kind::kOutside, 4,
              "program.tile:9:15: error: the load is outside of tensor 'x': 'row' is 3, and its extent is 3\n"
              "store y[at] = load x[at]\n"
              "              ^~~~~~~~~~\n"
              "note: it is at x[3; 0] of x[3; 4], in the program tile = 1\n"
              "note: it is the first one of 4 elements\n");
  expectFault({faults[1]}, Fault::Kind::kOutside, 4,
              "program.tile:9:1: error: the store is outside of tensor 'y': 'row' is 3, and its extent is 3\n"
              "store y[at] = load x[at]\n"
              "^~~~~~~~~~~~~~~~~~~~~~~~\n"
              "note: it is at y[3; 0] of y[3; 4], in the program tile = 1\n"
              "note: it is the first one of 4 elements\n");
  expectFault(faultsOf(3, std::string(kRows) + "store y[at] = load x[at - 1]"), Fault::Kind::kOutside, 4,
              "program.tile:9:15: error: the load is outside of tensor 'x': 'row' is -1, and its extent is 3\n"
              "store y[at] = load x[at - 1]\n"
              "              ^~~~~~~~~~~~~~\n"
              "note: it is at x[-1; 0] of x[3; 4], in the program tile = 0\n"
              "note: it is the first one of 4 elements\n");
  EXPECT_TRUE(faultsOf(3, std::string(kRows) + "store y[at] = load x[at - 1 if at > 0]").empty());
}

TEST(TileFindings, ASideThatIsNotChosenReadsNothing) {
  TileCall call = callOf(3);
  const TileFindings findings =
      interpret(program(std::string(kRows) + "store y[at] = rows > 100 ? load x[at + 100] : load x[at]"), call);
  EXPECT_TRUE(findings.faults.empty());
  EXPECT_EQ(valuesOf(call.tensors.at("y")), valuesOf(call.tensors.at("x")));
}

TEST(TileFindings, TwoRowsAtOnePlace) {
  expectFault(faultsOf(2, std::string(kRows) + "store unique y[at / 2] = load x[at]"), Fault::Kind::kStoredTwice, 4,
              "program.tile:9:1: error: two rows are stored to y[0; 0], and which one stays there is not known\n"
              "store unique y[at / 2] = load x[at]\n"
              "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
              "note: it is in the program tile = 0\n"
              "note: 'unique' promises that no two rows have one place\n"
              "note: it is the first one of 4 elements\n");
}

TEST(TileFindings, TwoProgramsAtOnePlace) {
  expectFault(faultsOf(4, "let at = iota(row) below rows\nstore y[at] = load x[at]"), Fault::Kind::kStoredTwice, 8,
              "program.tile:9:1: error: two programs store to y[0; 0], and which one stays there is not known\n"
              "store y[at] = load x[at]\n"
              "^~~~~~~~~~~~~~~~~~~~~~~~\n"
              "note: they are the program tile = 0 and the program tile = 1\n"
              "note: it is the first one of 8 elements\n");
}

// One program may store to a place again.
TEST(TileFindings, AProgramMayStoreTwice) {
  TileCall call = callOf(2);
  const TileFindings findings =
      interpret(program(std::string(kRows) + "store y[at] = 1.0\nstore y[at] = load x[at]"), call);
  EXPECT_TRUE(findings.faults.empty());
  EXPECT_EQ(findings.stored, 16);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), valuesOf(call.tensors.at("x")));
}

TEST(TileFindings, AWhenThatIsTooNarrow) {
  const auto faults = [](const std::string &predicate, const std::string &when) {
    return faultsOf(3, std::string(kRows) + "let s = mask(load x[at], " + predicate + ", 0) over " + when +
                           "\nstore y[at] = s");
  };
  expectFault(faults("iota(c) < 3", "c when tile == 0"), Fault::Kind::kBrokenWhen, 1,
              "program.tile:9:54: error: the mask leaves out row = 0, c = 3 of its tile, and 'when' does not "
              "hold there\n"
              "let s = mask(load x[at], iota(c) < 3, 0) over c when tile == 0\n"
              "                                                     ^~~~~~~~~\n"
              "note: the predicate fails there, in the program tile = 1\n");
  // What does not exist along the axis of the mask is left out, too.
  expectFault(faults("iota(c) < 4", "row when tile == 0"), Fault::Kind::kBrokenWhen, 4,
              "program.tile:9:56: error: the mask leaves out row = 1, c = 0 of its tile, and 'when' does not "
              "hold there\n"
              "let s = mask(load x[at], iota(c) < 4, 0) over row when tile == 0\n"
              "                                                       ^~~~~~~~~\n"
              "note: nothing exists there, in the program tile = 1\n"
              "note: it is the first one of 4 elements\n");
  EXPECT_TRUE(faults("iota(c) < 3", "c when tile >= 0").empty());
  // Where the row does not exist, its mask may leave out anything.
  EXPECT_TRUE(faults("at + iota(c) < 6", "c when tile == 0").empty());
}

TEST(TileFindings, IntegersDividedByZero) {
  // The second program has one row, whose number is 2. Of the first one's rows one is divided by 0, in four columns.
  expectFault(faultsOf(3, std::string(kRows) + "store y[at] = ((iota(c) + 8) / (at - 1)) as f32"),
              Fault::Kind::kDividedByZero, 4,
              "program.tile:9:16: error: an integer is divided by 0\n"
              "store y[at] = ((iota(c) + 8) / (at - 1)) as f32\n"
              "               ^~~~~~~~~~~~~~~~~~~~~~~~\n"
              "note: it is at row = 1, c = 0 of the tile, in the program tile = 0\n"
              "note: it is the first one of 4 elements\n");
  expectFault(faultsOf(2, std::string(kRows) + "store y[at] = (rows % (rows - 2)) as f32"), Fault::Kind::kDividedByZero,
              1,
              "program.tile:9:16: error: an integer is divided by 0\n"
              "store y[at] = (rows % (rows - 2)) as f32\n"
              "               ^~~~~~~~~~~~~~~~~\n"
              "note: it is in the program tile = 0\n");
  // What does not exist, what is not chosen, and a row that a condition leaves out.
  EXPECT_TRUE(faultsOf(3, std::string(kRows) + "store y[at] = (8 / (at - 3)) as f32").empty());
  EXPECT_TRUE(faultsOf(3, std::string(kRows) + "store y[at] = (at == 1 ? 0 : 8 / (at - 1)) as f32").empty());
  EXPECT_TRUE(faultsOf(3, std::string(kRows) + "store y[at] = at != 1 && 8 / (at - 1) > 1 ? 1.0 : 0.0").empty());
  EXPECT_TRUE(faultsOf(3, std::string(kRows) + "store y[at] = rows == 3 ? 0.0 : (8 / (rows - 3)) as f32").empty());
  EXPECT_TRUE(faultsOf(3, std::string(kRows) + "store y[at] = load x[0 / (at - 1) if at != 1]").empty());
}

TEST(TileFindings, ReportsAreKept) {
  TileCall call = callOf(3);
  const TileFindings findings = interpret(program("report wrong at tile * 10 if tile == 1", "code wrong = 6"), call);
  EXPECT_EQ(findings.reports, (std::vector<std::pair<int64_t, int64_t>>{{6, 10}}));
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
  EXPECT_EQ(messageOf("kernel p\nchoice a = 1 | 2\nrequire a == 3"),
            "the interpreter cannot go on: no configuration is admitted");
}

} // namespace
} // namespace nsa::test::tile
