// What the interpreter of the tile language computes, beside results that were computed by hand.
#include "tests/unit/tile_interpreter/tile_programs.h"

#include <cmath>
#include <limits>

namespace nsa::test::tile {
namespace {

using Numbers = std::vector<double>;

Numbers resultOf(const std::string &body, int64_t rows, const std::string &declarations = "") {
  TileCall call = callOf(rows);
  const TileFindings findings = interpret(program(body, declarations), call);
  EXPECT_TRUE(findings.faults.empty());
  return valuesOf(call.tensors.at("y"));
}

TEST(TileInterpreter, AFormulaIsComputedForWhatExists) {
  TileCall call = callOf(3);
  const TileFindings findings = interpret(program(std::string(kRows) + "store y[at] = load x[at] * 2 + 1"), call);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), (Numbers{3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25}));
  EXPECT_EQ(findings.programs, 2);
  EXPECT_EQ(findings.stored, 12);
  EXPECT_TRUE(findings.faults.empty());
}

TEST(TileInterpreter, ReductionsLeaveOutWhatDoesNotExist) {
  EXPECT_EQ(resultOf(std::string(kRows) + "store y[at] = sum(load x[at]) over c", 1), (Numbers{10, 10, 10, 10}));
  // Of two rows of the second block, one exists.
  EXPECT_EQ(resultOf(std::string(kRows) + "store y[at] = sum(load x[at] + 100) over row", 3),
            (Numbers{206, 208, 210, 212, 206, 208, 210, 212, 109, 110, 111, 112}));
  EXPECT_EQ(resultOf(std::string(kRows) + "store y[at] = max(-load x[at]) over row", 3),
            (Numbers{-1, -2, -3, -4, -1, -2, -3, -4, -9, -10, -11, -12}));
}

TEST(TileInterpreter, LoopsCarryVariables) {
  // The parts of a row are 4 columns, then 2.
  TileCall call;
  call.tensors["x"] = tensorOf({1, 6}, {1, 2, 3, 4, 5, 6});
  call.tensors["y"] = tensorOf({1, 6}, Numbers(6, 0));
  call.scalars["rows"] = 1;
  call.values["columns"] = "6";
  interpret("kernel p\nfixed columns\ngrid tile = rows, 1, 1\nthreads 32\naxis row = 1, c = 4\n"
            "tensor (x, y)[row; place: columns]\nscalar rows: i32\n"
            "let at = tile + iota(row) below rows\n"
            "var total: [row] = 0, turns = 0\n"
            "for place in 0 .. columns by c {\n  total = total + sum(load x[at; place] + 1) over c\n"
            "  turns += 1\n}\n"
            "for place in 0 .. columns by c {\n  store y[at; place] = total + turns as f32 * 100\n}\n",
            call);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), Numbers(6, 227));
}

TEST(TileInterpreter, ProductsSumOverTheirAxis) {
  // y_re = sum over c of x_rc w_ec
  TileCall call = callOf(2);
  call.tensors["w"] = tensorOf({4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, -1});
  call.tensors["z"] = tensorOf({2, 4}, Numbers(8, 0));
  interpret(program(std::string(kRows) + "store z[at; iota(e)] = dot(load x[at], load w[iota(e)]) over c",
                    "tensor w[e; c], z[row; e]"),
            call);
  EXPECT_EQ(valuesOf(call.tensors.at("z")), (Numbers{1, 2, 10, -4, 5, 6, 26, -8}));
}

TEST(TileInterpreter, AMaskedWeightOf0AnnihilatesNan) {
  TileCall call = callOf(1);
  call.tensors["w"] = tensorOf({4, 4}, {1, 1, 1, 1, 2, 2, 2, 2, NAN, NAN, NAN, NAN, kInfinity, 0, 0, 0});
  call.tensors["z"] = tensorOf({1, 4}, Numbers(4, 0));
  const std::string tensors = "tensor w[c; e], z[row; e]";
  const std::string product = "store z[at; iota(e)] = dot(p, load w[iota(c)]) over c";
  interpret(program(std::string(kRows) + "let p = mask(load x[at], iota(c) < 2, 0) over c\n" + product, tensors), call);
  EXPECT_EQ(valuesOf(call.tensors.at("z")), Numbers(4, 5));
  interpret(program(std::string(kRows) + "let p = iota(c) < 2 ? load x[at] : 0\n" + product, tensors), call);
  for (const double value : valuesOf(call.tensors.at("z")))
    EXPECT_TRUE(std::isnan(value));
}

TEST(TileInterpreter, AMaskFillsWhatFailsAndWhatDoesNotExist) {
  TileCall call = callOf(3);
  call.tensors["z"] = tensorOf({2, 4}, Numbers(8, 0));
  // The second block has one row; its other one is -inf along the mask's axis, and takes part.
  interpret(program(std::string(kRows) +
                        "let s = mask(load x[at], iota(c) != 1) over row\nstore z[tile; iota(c)] = max(s) over row",
                    "tensor z[tile; c]"),
            call);
  EXPECT_EQ(valuesOf(call.tensors.at("z")), (Numbers{5, -kInfinity, 7, 8, 9, -kInfinity, 11, 12}));
}

TEST(TileInterpreter, OuterAxesStackValuesAndTensors) {
  TileCall call = callOf(1);
  call.tensors["g"] = tensorOf({2}, {3, 5});
  const std::string body = std::string(kRows) + "let g_of = load g[iota(two)]\nlet o_of = stack(x, b) over two\n"
                                                "var total: [row, c] = 0\nfor i in two {\n"
                                                "  if o_of[two: i].present {\n"
                                                "    total = fma(g_of[two: i], load o_of[two: i][at], total)\n  }\n}\n"
                                                "store y[at] = total + sum(g_of) over two";
  const std::string tensors = "tensor g[two], b[row; c] optional";
  interpret(program(body, tensors), call);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), (Numbers{11, 14, 17, 20}));
  call.tensors["b"] = tensorOf({1, 4}, {10, 20, 30, 40});
  interpret(program(body, tensors), call);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), (Numbers{61, 114, 167, 220}));
}

TEST(TileInterpreter, FunctionsFindTheirAxes) {
  const std::string functions =
      "fn scaled[a, b](x: [a, b], s: [a]) {\n  let y = x * s\n  return (y, sum(y) over b)\n}\n"
      "record Pair { first, second: i32 }\n";
  EXPECT_EQ(resultOf(functions + kRows +
                         "let pair = Pair(2, 3)\n"
                         "let (v, t) = scaled[b: c](load x[at], sum(load x[at]) over c)\n"
                         "store y[at] = v + t + (pair.first * pair.second) as f32",
                     1),
            (Numbers{116, 126, 136, 146}));
}

TEST(TileInterpreter, IntegersAreThoseOfC) {
  const std::string scalars = "let n = low(at) - 7\n";
  EXPECT_EQ(resultOf(kRows + scalars + "store y[at] = (n / 2 * 100 + n % 2 * 10 + ceildiv(rows, 2)) as f32", 1),
            Numbers(4, -309));
  EXPECT_EQ(resultOf(kRows + std::string("store y[at] = (high(at) + i32.max) as f32"), 2), Numbers(8, -0x1p31));
}

TEST(TileInterpreter, AProgramMayEndEarly) {
  EXPECT_EQ(resultOf(std::string(kRows) + "return if tile > 0\nstore y[at] = 0.5", 3),
            (Numbers{.5, .5, .5, .5, .5, .5, .5, .5, -1, -1, -1, -1}));
}

TEST(TileInterpreter, ShiftAndLast) {
  EXPECT_EQ(
      resultOf(std::string(kRows) + "let v = load x[at] as f32\nstore y[at] = shift(v, last(v) over c) over c", 1),
      (Numbers{4, 1, 2, 3}));
}

TEST(TileInterpreter, StoresRoundToTheElementsOfTheTensor) {
  TileCall call;
  call.values["dtype"] = "bf16";
  call.tensors["x"] = tensorOf({1, 4}, {1, 2, 3, 4}, Element::kBf16);
  call.tensors["y"] = tensorOf({1, 4}, Numbers(4, 0), Element::kBf16);
  call.scalars["rows"] = 1;
  interpret(program(std::string(kRows) + "store y[at] = load x[at] + 0.001"), call);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), (Numbers{1, 2, 3, 4}));
  interpret(program(std::string(kRows) + "store y[at] = load x[at] + 0.0041"), call);
  EXPECT_EQ(valuesOf(call.tensors.at("y")), (Numbers{1.0078125, 2, 3, 4}));
}

// The error of a cell holds what another order of a sum gives, and not what another formula gives.
TEST(TileInterpreter, ErrorsAreNarrow) {
  TileCall call = callOf(1);
  interpret(program(std::string(kRows) + "store y[at] = exp2(sum(load x[at] * 0.1) over c)"), call);
  const Cell cell = call.tensors.at("y").cells[0];
  EXPECT_NEAR(cell.value, 2, 1e-6);
  EXPECT_GT(cell.error, 0);
  EXPECT_TRUE(mayBe(Element::kF32, cell, 2));
  EXPECT_FALSE(mayBe(Element::kF32, cell, 2.00001));
  EXPECT_FALSE(mayBe(Element::kF32, cell, NAN));
  call.tensors.at("x").cells = {{1, 0}, {2, 0}, {3, 0}, {4, 0}};
  interpret(program(std::string(kRows) + "store y[at] = fma(load x[at], 0.1, 0.7)"), call);
  for (const Cell &exact : call.tensors.at("y").cells)
    EXPECT_EQ(exact.error, 0);
}

// Products, sums and functions of an unknown number are unknown, also where the number meets a 0 or vanishes.
TEST(TileInterpreter, WhatComesOfTheUnknownIsUnknown) {
  TileCall call = callOf(1);
  call.tensors["w"] = tensorOf({4, 4}, Numbers(16, 0));
  call.tensors["z"] = tensorOf({2, 4}, Numbers(8, 0));
  // A divisor that may be 0: 0.1 + 0.2 - 0.3 in any order.
  const std::string unknown = "let u = load x[at] / (sum(load x[at] * 0.1) over c - 1.0)\n";
  interpret(program(std::string(kRows) + unknown + "store z[at; iota(e)] = erf(dot(u, load w[iota(e)]) over c)",
                    "tensor w[e; c], z[row; e]"),
            call);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(call.tensors.at("z").cells[i].isUnknown()) << i;
  interpret(program(std::string(kRows) + unknown + "store y[at] = exp2(load x[at] - 3000.0) * u"), call);
  EXPECT_TRUE(call.tensors.at("y").cells[0].isUnknown());
  // The sum is 10 * 2^40 in any order that does not round, and exp2(-2000) is 0.
  interpret(program(std::string(kRows) + "let total = sum(load x[at] * 1099511627776.0) over c - 10995116277760.0\n"
                                         "store y[at] = exp2(total - 2000.0)"),
            call);
  EXPECT_EQ(call.tensors.at("y").cells[0].value, 0);
  EXPECT_TRUE(call.tensors.at("y").cells[0].isUnknown());
}

// An infinite factor makes a product infinite, and its sign or NaN depends on what the other factor may be.
TEST(TileInterpreter, AnInfiniteFactorLeavesOnlyTheSignOpen) {
  const Cell infinite{kInfinity, 0};
  EXPECT_EQ(errorOfProduct(infinite, {2, 0.5}), 0);
  EXPECT_EQ(errorOfProduct(infinite, {0, 0}), 0) << "it is NaN";
  EXPECT_EQ(errorOfProduct(infinite, {0.05, 0.1}), kInfinity);
  EXPECT_EQ(errorOfProduct({0, 0.1}, infinite), kInfinity);
  EXPECT_EQ(errorOfProduct({2, 0.5}, {3, 0.25}), 2 * 0.25 + 3 * 0.5 + 0.5 * 0.25);
  EXPECT_TRUE(compute(Operation::kMultiply, Element::kF32, infinite, {0.05, 0.1}).isUnknown());
  EXPECT_EQ(roundedTo(Element::kF16, Cell{1e6, 1}).error, 0) << "all of it rounds to infinity";
  EXPECT_TRUE(roundedTo(Element::kF16, Cell{65520, 100}).isUnknown());
}

// A GPU may keep the bits of a product that a sum takes.
TEST(TileInterpreter, AGpuMayRoundOtherwise) {
  TileCall call = callOf(1);
  const std::string text = program(std::string(kRows) + "store y[at] = load x[at] * 0.1 - 0.3");
  interpret(text, call);
  const Cell rounded = call.tensors.at("y").cells[2];
  EXPECT_EQ(rounded.error, 0);
  call.isGpu = true;
  interpret(text, call);
  const Cell open = call.tensors.at("y").cells[2];
  const double fused = static_cast<double>(std::fma(3.0F, 0.1F, -0.3F));
  EXPECT_NE(rounded.value, fused);
  EXPECT_TRUE(mayBe(Element::kF32, open, rounded.value) && mayBe(Element::kF32, open, fused));
  EXPECT_FALSE(mayBe(Element::kF32, open, 1e-6));
}

// A condition that rounding may turn over makes both sides possible.
TEST(TileInterpreter, OpenConditionsAllowBothSides) {
  TileCall call = callOf(1);
  interpret(program(std::string(kRows) + "store y[at] = sum(load x[at] * 0.1) over c > 1.0 ? 5.0 : 7.0"), call);
  const Cell cell = call.tensors.at("y").cells[0];
  EXPECT_TRUE(mayBe(Element::kF32, cell, 5) && mayBe(Element::kF32, cell, 7));
  EXPECT_FALSE(mayBe(Element::kF32, cell, 9.5));
}

} // namespace
} // namespace nsa::test::tile
