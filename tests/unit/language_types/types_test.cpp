// What expressions are: kinds, element types and axes, by the text of nsa::language::explain.
#include "compiler/language/types/Explain.h"
#include "tests/unit/language_types/language_program.h"

#include <gtest/gtest.h>

namespace nsa::language {
namespace {

constexpr std::string_view kTypesHeader = R"(kernel x
grid    block = blocks, 1, 1
axis    row = 16, key = 32, d = 64, e = 64, part = 3 outer
tensor  q[entry, time; d], k[entry, time; d], v[entry, time; e], lse[time]: f32, places[n]: i32
scalar  rows: i32, scale: f32
let row_index = block * 16 + iota(row) below rows
let q_tile    = load q[0, row_index]
let k_tile    = load k[0, iota(key)]
)";

// How the value of an expression is called: "f32[row, key]"; what is wrong with it otherwise.
std::string typeOf(const std::string &expression, const std::string &before = "") {
  LanguageProgram program(std::string(kTypesHeader) + before + "let x = " + expression + "\n");
  const Program *typed = program.type();
  if (!typed)
    return program.messages();
  const std::string text = explain(*typed);
  const size_t begin = text.rfind("\nx: ");
  return begin == std::string::npos ? "" : text.substr(begin + 4, text.find_first_of(";=\n", begin + 1) - begin - 4);
}

TEST(LanguageTypes, OperationsUniteAxes) {
  EXPECT_EQ(typeOf("dot(q_tile, k_tile) over d"), "f32[row, key]");
  EXPECT_EQ(typeOf("(dot(q_tile, k_tile) over d) * (load lse[iota(key)])"), "f32[row, key]");
  EXPECT_EQ(typeOf("max(dot(q_tile, k_tile) over d) over key"), "f32[row]");
  EXPECT_EQ(typeOf("iota(row) - iota(key)"), "i32[row, key] ");
  EXPECT_EQ(typeOf("iota(row) - iota(key) >= 0 && iota(row) > 3"), "");
  EXPECT_EQ(typeOf("iota(row) > iota(key) ? 1.0 : scale"), "f32[row, key]");
}

TEST(LanguageTypes, ElementsOfMemoryAreF32InArithmetic) {
  EXPECT_EQ(typeOf("load q[0, row_index]"), "io[row, d]");
  EXPECT_EQ(typeOf("q_tile + q_tile"), "f32[row, d]");
  EXPECT_EQ(typeOf("q_tile as f32"), "f32[row, d]");
  EXPECT_EQ(typeOf("rows > 3 ? q_tile : load q[1, row_index]"), "io[row, d]");
  EXPECT_EQ(typeOf("rows > 3 ? q_tile : 0"), "f32[row, d]");
}

TEST(LanguageTypes, ANumberTakesTheTypeOfTheOtherSide) {
  EXPECT_EQ(typeOf("q_tile * 2"), "f32[row, d]");
  EXPECT_EQ(typeOf("iota(row) * 2"), "i32[row] ");
  EXPECT_EQ(typeOf("(iota(row) > 2 ? 1 : 0) as f32"), "f32[row]");
  EXPECT_NE(typeOf("iota(row) * 0.5").find("error: the number 0.5 is no i32"), std::string::npos);
}

TEST(LanguageTypes, AConstantChoosesAValueButNotItsType) {
  EXPECT_EQ(typeOf("1 == 1 ? rows : iota(row)"), "i32[row] ");
  EXPECT_EQ(typeOf("1 == 2 ? q_tile + 1 : scale"), "f32[row, d]");
}

TEST(LanguageTypes, LoadsOfI32AreIndices) {
  EXPECT_EQ(typeOf("load places[iota(row)]"), "i32[row] ");
  EXPECT_EQ(typeOf("load k[0, load places[iota(key)]]"), "io[key, d]");
}

TEST(LanguageTypes, OuterAxesAreValuesOfTheirOwn) {
  const std::string loads = "let at = rows + iota(part)\nlet a = load lse[at * 16 + iota(row)]\n";
  EXPECT_EQ(typeOf("a[part: 1]", loads), "");
  EXPECT_EQ(typeOf("max(a) over part", loads), "f32[row]");
  EXPECT_EQ(typeOf("exp2(a)[part: 2] + 1.0", loads), "f32[row]");
}

TEST(LanguageTypes, AFunctionTakesItsAxesByNameAndThenByElimination) {
  const std::string library = "library f\n"
                              "fn step[row, key](m: [row], s: [row, key]) { return max(m, max(s) over key) }\n"
                              "fn first[a, b](m: [a], s: [a, b]) { return max(m, max(s) over b) }\n";
  const auto typed = [&](const std::string &call) {
    LanguageProgram program("kernel x\nimport f\naxis row = 16, key = 32, d = 64\n"
                            "tensor q[time; d], k[time; d], lse[time]: f32\n"
                            "let s = dot(load q[iota(row)], load k[iota(key)]) over d\nlet x = " +
                            call + "\n");
    program.add("f", library);
    const Program *result = program.type();
    if (!result)
      return program.messages();
    const std::string text = explain(*result);
    const size_t begin = text.rfind("\nx: ");
    return text.substr(begin + 4, text.find_first_of(";\n", begin + 1) - begin - 4);
  };
  EXPECT_EQ(typed("step(load lse[iota(row)], s)"), "f32[row]");
  EXPECT_EQ(typed("first(load lse[iota(row)], s)"), "f32[row]");
  EXPECT_NE(typed("step(load lse[iota(key)], s)").find("'m' of 'step' is f32[row], this is f32[key]"),
            std::string::npos);
}

TEST(LanguageTypes, TheProgramIsThatOfTheProblem) {
  // What a constant excludes is typed, and leaves nothing.
  LanguageProgram program(std::string(kTypesHeader) +
                          "var sum: [row] = 0\nif 1 == 2 { sum += max(q_tile as f32) over d }\n"
                          "store lse[row_index] = sum\n");
  const Program *typed = program.type();
  ASSERT_TRUE(typed) << program.messages();
  for (const Value *value : typed->body->values)
    EXPECT_NE(value->op, Op::kReduceMax);
  LanguageProgram wrong(std::string(kTypesHeader) + "if 1 == 2 { let x = max(q_tile as f32) over e }\n");
  EXPECT_FALSE(wrong.type());
}

// Columns end with the row of their tensor, so a store needs the bound of the value that it stores.
TEST(LanguageTypes, ColumnsEndWithTheRow) {
  const auto messages = [](const std::string &load, const std::string &store) {
    LanguageProgram program("kernel x\ngrid tile = tiles, 1, 1\naxis row = 16, c = 32\n"
                            "tensor short[time; x: 20], wide[time; x: 64], other[time; x: 20]\n"
                            "let at = tile * 16 + iota(row) below 64\nlet x = load " +
                            load + "\nstore " + store + " = x\n");
    program.type();
    return program.messages();
  };
  EXPECT_EQ(messages("short[at; iota(c)]", "other[at; iota(c)]"), "");
  EXPECT_EQ(messages("short[at; iota(c) below 32]", "other[at; iota(c)]"), "");
  EXPECT_EQ(messages("short[at; iota(c)]", "wide[at; iota(c) below 20]"), "");
  EXPECT_EQ(messages("wide[at; iota(c)]", "short[at; iota(c)]"), "");
  EXPECT_EQ(messages("short[at; iota(c)]", "wide[at; iota(c)]"),
            "x.tile:7:27: error: the value exists only where iota(c) < 20, and is stored to all of 'c'\n"
            "store wide[at; iota(c)] = x\n"
            "                          ^\n"
            "x.tile:6:24: note: the index that its 'c' has\n"
            "let x = load short[at; iota(c)]\n"
            "                       ^~~~~~~\n"
            "hint: store along the same index, with its bound\n");
  EXPECT_EQ(messages("short[at; iota(c) below 32]", "wide[at; iota(c) below 32]"),
            "x.tile:7:36: error: the value exists only where iota(c) < 20, and is stored to all of 'c'\n"
            "store wide[at; iota(c) below 32] = x\n"
            "                                   ^\n"
            "x.tile:6:24: note: the index that its 'c' has\n"
            "let x = load short[at; iota(c) below 32]\n"
            "                       ^~~~~~~~~~~~~~~~\n"
            "hint: store along the same index, with its bound\n");
}

// A row that is stored whole ends with its axis, of which the padding of a tile is not written.
TEST(LanguageTypes, AWholeRowIsStoredWhereItExists) {
  const auto messages = [](const std::string &value) {
    LanguageProgram program("kernel x\ngrid tile = tiles, 1, 1\naxis row = 16, d = 40, w = 80, c = 16\n"
                            "tensor x[row: time; d], (y, z)[row: time; w], wide[row: time; x: 128]\n"
                            "scalar n: i32\nlet at = tile * 16 + iota(row) below 64\nstore y[at] = " +
                            value + "\n");
    program.type();
    return program.messages();
  };
  EXPECT_EQ(messages("load z[at]"), "");
  EXPECT_EQ(messages("load z[at; iota(w)]"), "");
  EXPECT_EQ(messages("load wide[at; iota(w)]"), "");
  EXPECT_EQ(messages("load wide[at; iota(w) below 80] + 1.0"), "");
  EXPECT_EQ(messages("load wide[at; iota(w) below 100]"), "");
  EXPECT_EQ(messages("mask(load x[at; iota(w)], true, 0) over w"), "");
  EXPECT_EQ(messages("load x[at; iota(w)]"),
            "x.tile:7:15: error: the value exists only where iota(w) < 40, and is stored to all of 'w'\n"
            "store y[at] = load x[at; iota(w)]\n"
            "              ^~~~~~~~~~~~~~~~~~~\n"
            "x.tile:7:26: note: the index that its 'w' has\n"
            "store y[at] = load x[at; iota(w)]\n"
            "                         ^~~~~~~\n"
            "hint: store along the same index, with its bound\n");
  EXPECT_EQ(messages("load z[at; iota(w) below 10] + 1.0"),
            "x.tile:7:15: error: the value exists only where iota(w) < 10, and is stored to all of 'w'\n"
            "store y[at] = load z[at; iota(w) below 10] + 1.0\n"
            "              ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
            "x.tile:7:26: note: the index that its 'w' has\n"
            "store y[at] = load z[at; iota(w) below 10] + 1.0\n"
            "                         ^~~~~~~\n"
            "hint: store along the same index, with its bound\n");
  EXPECT_EQ(messages("load z[at; iota(w) below n]"),
            "x.tile:7:15: error: the value exists only where iota(w) < n, and is stored to all of 'w'\n"
            "store y[at] = load z[at; iota(w) below n]\n"
            "              ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
            "x.tile:7:26: note: the index that its 'w' has\n"
            "store y[at] = load z[at; iota(w) below n]\n"
            "                         ^~~~~~~\n"
            "hint: store along the same index, with its bound\n");
  // Another part of a wider row is not its begin.
  EXPECT_EQ(messages("load wide[at; 80 + iota(w)]"),
            "x.tile:7:15: error: the value exists only where 80 + iota(w) < 128, and is stored to all of 'w'\n"
            "store y[at] = load wide[at; 80 + iota(w)]\n"
            "              ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
            "x.tile:7:29: note: the index that its 'w' has\n"
            "store y[at] = load wide[at; 80 + iota(w)]\n"
            "                            ^~~~~~~~~~~~\n"
            "hint: store along the same index, with its bound\n");
}

// Values of which a part stands in many others are not searched through to the end.
TEST(LanguageTypes, WhatIsMadeOfManyPartsEnds) {
  std::string text = "kernel x\ngrid tile = tiles, 1, 1\naxis row = 16, c = 32\n"
                     "tensor a[time; x: 20], b[time; x: 40], out[time; x: 20]\nscalar n: i32\n"
                     "let at = tile * 16 + iota(row) below 64\nlet n0 = n\nlet t0 = a\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    text += "let n" + now + " = max(min(n" + before + " + n" + before + ", n" + before + "), n" + before + ")\n";
  }
  LanguageProgram numbers(text + "let y = load b[at / n40; n40 * 32 + iota(c) below n40]\n");
  numbers.type();
  EXPECT_EQ(numbers.messages(), "");
  for (int i = 1; i <= 12; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    text += "let t" + now + " = n > " + now + " ? t" + before + " : " + (i == 1 ? "b" : "t" + before) + "\n";
  }
  LanguageProgram tensors(text + "let y = load t12[at; iota(c)]\n");
  tensors.type();
  EXPECT_EQ(tensors.messages(),
            "x.tile:61:14: error: a tensor with columns is chosen by at most 512 choices, with those of its parts\n"
            "let y = load t12[at; iota(c)]\n"
            "             ^~~~~~~~~~~~~~~~\n");
}

} // namespace
} // namespace nsa::language
