#include "tests/harness/tile/drawn_formula.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace nsa::test::tile {

namespace {

constexpr double kMost = 4096; // of all numbers that a formula is made of

AxisNames united(AxisNames left, const AxisNames &right) {
  left.insert(right.begin(), right.end());
  return left;
}

bool fits(const Known &known, const AxisNames &axes) { return std::ranges::includes(axes, known.axes); }

} // namespace

std::string literal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  std::string result = text.data();
  if (result.find_first_of(".e") == std::string::npos)
    result += ".0";
  return value < 0 ? "(" + result + ")" : result;
}

double FormulaDrawer::number() { return static_cast<double>(from(-64, 64)) / 64; }

Known FormulaDrawer::clamped(const Known &value, double most) {
  if (value.most <= most)
    return value;
  const std::string bound = literal(most);
  return {"max(min(" + value.text + ", " + bound + "), -" + bound + ")", value.axes, most};
}

Known FormulaDrawer::leaf(const AxisNames &axes) {
  std::vector<Known> fitting;
  for (const Known &known : numbers)
    if (fits(known, axes))
      fitting.push_back(known);
  if (!fitting.empty() && !oneIn(4))
    return anyOf(fitting);
  if (oneIn(2)) {
    const Known number = index(axes, 1);
    return {"(" + number.text + " as f32)", number.axes, number.most};
  }
  return {literal(number() * 2), {}, 2};
}

Known FormulaDrawer::joined(const Known &left, const Known &right, int which) {
  const AxisNames axes = united(left.axes, right.axes);
  const auto pair = [&](const std::string &op) { return "(" + left.text + " " + op + " " + right.text + ")"; };
  switch (which) {
  case 0:
    return {pair("+"), axes, left.most + right.most};
  case 1:
    return {pair("-"), axes, left.most + right.most};
  case 2:
    return {pair("*"), axes, left.most * right.most};
  case 3:
    return {"(" + left.text + " / (abs(" + right.text + ") + 0.5))", axes, left.most * 2};
  case 4:
    return {"min(" + left.text + ", " + right.text + ")", axes, std::max(left.most, right.most)};
  case 5:
    return {"max(" + left.text + ", " + right.text + ")", axes, std::max(left.most, right.most)};
  case 6: {
    const std::string third = literal(number());
    return {"fma(" + left.text + ", " + third + ", " + right.text + ")", axes, left.most + right.most};
  }
  default:
    return {anyOf(functions) + "(" + left.text + ", " + right.text + ")", axes, 8};
  }
}

Known FormulaDrawer::formula(const AxisNames &axes, int depth) {
  if (depth <= 0 || oneIn(6))
    return leaf(axes);
  const auto which = static_cast<int>(from(0, functions.empty() ? 14 : 15));
  if (which == 15 || which <= 6)
    return clamped(joined(formula(axes, depth - 1), formula(axes, depth - 1), which), kMost);
  const Known inner = formula(axes, depth - 1);
  switch (which) {
  case 7:
    return {"exp2(" + clamped(inner, 6).text + ")", inner.axes, 64};
  case 8:
    return {"log2(abs(" + inner.text + ") + 0.5)", inner.axes, 16};
  case 9:
    return {"sqrt(abs(" + inner.text + ") + 0.25)", inner.axes, std::sqrt(inner.most + 0.25)};
  case 10:
    return {"erf(" + inner.text + ")", inner.axes, 1};
  case 11:
    return {"roundeven(" + inner.text + ")", inner.axes, inner.most + 1};
  case 12:
    return {"(-" + inner.text + ")", inner.axes, inner.most};
  default: {
    const Known other = formula(axes, depth - 1);
    // The condition may have any of the axes.
    return {"(" + condition(axes, 2) + " ? " + inner.text + " : " + other.text + ")", axes,
            std::max(inner.most, other.most)};
  }
  }
}

Known FormulaDrawer::formulaWith(const Known &has, const AxisNames &axes, int depth) {
  return clamped(joined(formula(axes, depth), has, static_cast<int>(from(0, 2))), kMost);
}

Known FormulaDrawer::index(const AxisNames &axes, int depth) {
  if (depth <= 0 || oneIn(3)) {
    std::vector<Known> fitting;
    for (const Known &known : indices)
      if (fits(known, axes))
        fitting.push_back(known);
    if (!fitting.empty() && !oneIn(4))
      return anyOf(fitting);
    const int64_t value = from(0, 9);
    return {std::to_string(value), {}, 9};
  }
  Known inner = index(axes, depth - 1);
  const std::string number = std::to_string(from(2, 9));
  switch (from(0, 5)) {
  case 0:
    return {"(" + inner.text + " / " + number + ")", inner.axes, inner.most};
  case 1:
    return {"(" + inner.text + " % " + number + ")", inner.axes, 9};
  case 2:
    if (oneIn(3))
      return {"abs(" + inner.text + ")", inner.axes, inner.most};
    if (inner.most < 1000)
      return {"(" + inner.text + " * " + number + ")", inner.axes, inner.most * 9};
    return inner;
  default: {
    const Known other = index(axes, depth - 1);
    const auto which = static_cast<int>(from(0, 3));
    if (which >= 2)
      return {(which == 2 ? "min(" : "max(") + inner.text + ", " + other.text + ")", united(inner.axes, other.axes),
              std::max(inner.most, other.most)};
    return {"(" + inner.text + (which == 0 ? " + " : " - ") + other.text + ")", united(inner.axes, other.axes),
            inner.most + other.most};
  }
  }
}

std::string FormulaDrawer::condition(const AxisNames &axes, int depth, bool isExact) {
  static const std::vector<std::string> kComparisons = {"==", "!=", "<", "<=", ">", ">="};
  if (depth > 0 && oneIn(3)) {
    const std::string left = condition(axes, depth - 1, isExact);
    if (oneIn(3))
      return "(!" + left + ")";
    return "(" + left + (oneIn(2) ? " && " : " || ") + condition(axes, depth - 1, isExact) + ")";
  }
  if (!isExact && oneIn(3)) {
    // Not by ==: a rounding would decide.
    static const std::vector<std::string> kOrders = {"<", "<=", ">", ">="};
    return "(" + formula(axes, 1).text + " " + anyOf(kOrders) + " " + formula(axes, 0).text + ")";
  }
  const Known left = index(axes, 1);
  if (oneIn(4))
    return "(" + left.text + " in " + std::to_string(from(0, 1) * from(0, 5)) + " .. " +
           (oneIn(2) ? std::to_string(from(6, 60)) : index(axes, 1).text) + ")";
  return "(" + left.text + " " + anyOf(kComparisons) + " " + index(axes, 0).text + ")";
}

} // namespace nsa::test::tile
