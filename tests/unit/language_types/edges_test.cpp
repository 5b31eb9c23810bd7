// Ends of formulas, the edges that follow from them, and what is filled: by the text of nsa::language::explain.
#include "compiler/language/types/Explain.h"
#include "tests/unit/language_types/language_program.h"

#include <gtest/gtest.h>

namespace nsa::language {
namespace {

constexpr std::string_view kEdgesHeader = R"(kernel x
grid    block = blocks, kv_head = kv_heads, 1
axis    row = 16, key = 32, d = 64, e = 64
tensor  q[entry, time, head; d], k[entry, time, head; d], v[entry, time, head; e], out[entry, time, head; e]
tensor  sums[time, head]: f32, places[n]: i32
scalar  rows, keys, window, earlier: i32
let index  = block * 16 + iota(row) below rows
let q_tile = load q[0, index, kv_head]
)";

// The lines of the explanation that say something of `name`.
std::string explained(std::string body, std::string_view name) {
  LanguageProgram program(std::string(kEdgesHeader) + std::move(body));
  const Program *typed = program.type();
  if (!typed)
    return program.messages();
  std::string found;
  std::string text = explain(*typed);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    line.remove_prefix(line.find_first_not_of(' '));
    if (line.starts_with(std::string(name) + ":"))
      found += std::string(line) + "\n";
    begin = end + 1;
  }
  return found;
}

// A loop over keys with scores `s` that `predicate` masks.
std::string masked(const std::string &newest, const std::string &low, const std::string &high,
                   const std::string &predicate, const std::string &over = "key") {
  return explained("let newest = " + newest + "\n" + "var sum: [row] = 0\n" + "for at in " + low + " .. " + high +
                       " by key {\n" + "  let k_tile = load k[0, at, kv_head]\n" +
                       "  let s = mask(dot(q_tile, k_tile) over d, " + predicate + ") over " + over + "\n" +
                       "  sum = max(sum, max(s) over key)\n}\n" + "store sums[index, kv_head] = sum\n",
                   "s");
}

TEST(LanguageEdges, CausalKeysAreAnEdgeAtTheirEnd) {
  EXPECT_EQ(masked("earlier + index", "0", "high(newest) + 1", "newest - at >= 0"),
            "s: f32[row, key]; exists where index < rows; masked where at + 31 > newest_low\n");
}

TEST(LanguageEdges, AWindowHasTwo) {
  EXPECT_EQ(masked("earlier + index / 4", "0", "high(newest) + 1", "newest - at >= 0 && newest - at < window"),
            "s: f32[row, key]; exists where index < rows; masked where at + 31 > newest_low || at <= newest_high - "
            "window\n");
  // Comparisons the other way round are the same.
  EXPECT_EQ(masked("earlier + index / 4", "0", "high(newest) + 1", "0 <= newest - at && window > newest - at"),
            "s: f32[row, key]; exists where index < rows; masked where at + 31 > newest_low || at <= newest_high - "
            "window\n");
}

TEST(LanguageEdges, WhatTheLoopDoesNotReachIsTestedToo) {
  EXPECT_EQ(masked("earlier + index", "0", "keys", "newest >= at"),
            "s: f32[row, key]; exists where index < rows; masked where at + 31 > newest_low || at + 31 >= keys\n");
}

TEST(LanguageEdges, AFallingIndexTurnsItsEnds) {
  EXPECT_EQ(masked("earlier - index", "0", "keys", "at < newest"),
            "s: f32[row, key]; exists where index < rows; masked where at + 31 >= newest_low || at + 31 >= keys\n");
}

TEST(LanguageEdges, ConstantsOfAPredicateAreNoPartOfIt) {
  EXPECT_EQ(masked("earlier + index", "0", "high(newest) + 1", "newest - at >= 0 && (1 == 1 || newest < window)"),
            "s: f32[row, key]; exists where index < rows; masked where at + 31 > newest_low\n");
}

TEST(LanguageEdges, WhereAPartOfTheKeysExistsItsNumberTells) {
  EXPECT_EQ(explained("let at = iota(key) below keys\n"
                      "let s = mask(dot(q_tile, load k[0, at, 0]) over d) over key\n"
                      "store sums[index, kv_head] = max(s) over key\n",
                      "s"),
            "s: f32[row, key]; exists where index < rows; masked where keys < 32\n");
}

TEST(LanguageEdges, AWriterMaySayWhere) {
  EXPECT_EQ(
      explained(
          "let position = load places[index]\n"
          "let s = mask(dot(q_tile, load k[0, iota(key), 0]) over d, position >= iota(key)) over key when window > 3\n"
          "store sums[index, kv_head] = max(s) over key\n",
          "s"),
      "s: f32[row, key]; exists where index < rows; masked where window > 3\n");
}

TEST(LanguageEdges, AProductOverAnAxisOfThePredicateAnnihilates) {
  const std::string body = "let newest = earlier + index\n"
                           "var o: [row, e] = 0\n"
                           "for at in 0 .. high(newest) + 1 by key {\n"
                           "  let k_tile = load k[0, at, 0]\n"
                           "  let v_tile = load v[0, at, 0]\n"
                           "  let s = mask(dot(q_tile, k_tile) over d, at <= newest) over key\n"
                           "  let p = exp2(s)\n"
                           "  o += dot(p, v_tile) over key\n"
                           "}\n"
                           "store out[0, index, kv_head] = o\n";
  EXPECT_EQ(explained(body, "o_next"),
            "o_next: f32[row, e]; exists where index < rows; zero annihilates where at + 31 > newest_low\n");
}

TEST(LanguageEdges, AProductOfWhatIsOnlyPresentDoesNot) {
  const std::string body = "let at = iota(key) below keys\n"
                           "let s = mask(dot(q_tile, load k[0, at, 0]) over d) over key\n"
                           "let o = dot(exp2(s), load v[0, at, 0]) over key\n"
                           "store out[0, index, kv_head] = o\n";
  EXPECT_EQ(explained(body, "o"), "o: f32[row, e]; exists where index < rows\n");
}

TEST(LanguageEdges, WhatDoesNotExistIsFilledBeforeAReduction) {
  const std::string load = "let at = iota(key) below keys\nlet s = dot(q_tile, load k[0, at, 0]) over d\n";
  const std::string store = "store sums[index, kv_head] = x\n";
  EXPECT_EQ(explained(load + "let x = max(s) over key\n" + store, "(a part)"),
            "(a part): f32[row, key]; exists where index < rows; filled with -inf where not at < keys\n");
  // Rows that are not loaded are 0, and stay 0 through a product and a sum.
  EXPECT_EQ(explained(load + "let x = sum(s * s + s) over key\n" + store, "(a part)"), "");
  EXPECT_EQ(explained(load + "let x = sum(exp2(s)) over key\n" + store, "(a part)"),
            "(a part): f32[row, key]; exists where index < rows; filled with 0 where not at < keys\n");
}

TEST(LanguageEdges, AVariableIsKnownForWhatItIsAfterAllIterations) {
  // Absent rows of the sum are 0 in front of the loop and in it, so none are filled; `extra` is not.
  const std::string loop = "var x: [row, key] = 0, y: [row, key] = 1\n"
                           "let at = iota(key) below keys\n"
                           "for i in 0 .. 4 {\n"
                           "  x += dot(q_tile, load k[i, at, 0]) over d\n"
                           "  y += dot(q_tile, load k[i, at, 0]) over d\n"
                           "}\n";
  EXPECT_EQ(explained(loop + "store sums[index, kv_head] = sum(x) over key\n", "(a part)"), "");
  EXPECT_EQ(explained(loop + "store sums[index, kv_head] = sum(y) over key\n", "(a part)"),
            "(a part): f32[row, key]; exists where index < rows; filled with 0 where not at < keys\n");
}

TEST(LanguageEdges, EndsAreThoseOfWhatExists) {
  const auto ends = [](const std::string &formula) {
    LanguageProgram program(std::string(kEdgesHeader) + "let f = " + formula +
                            "\nstore places[low(f) + 3 * high(f) if block == 0 && kv_head == 0] = 1\n");
    const Program *typed = program.type();
    return typed ? textOf(*typed->body->values.back()->access->coordinates[0]) : program.messages();
  };
  EXPECT_EQ(ends("index * 2"), "f_low + 3 * f_high");
  LanguageProgram program(std::string(kEdgesHeader) + "store places[high(index) if block == 0 && kv_head == 0] = 1\n");
  const Program *typed = program.type();
  ASSERT_TRUE(typed) << program.messages();
  Value high = *typed->body->values.back()->access->coordinates[0];
  EXPECT_EQ(high.name, "index_high");
  high.name = {};
  EXPECT_EQ(textOf(high), "min(block * 16 + 16, rows) - 1");
}

} // namespace
} // namespace nsa::language
