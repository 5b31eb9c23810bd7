// Draws formulas of the tile language: well typed, of bounded numbers, over axes that are asked for.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace nsa::test::tile {

using AxisNames = std::set<std::string>;

// What a formula may be made of: a name or an expression, its axes, and a bound of its absolute values.
struct Known {
  std::string text;
  AxisNames axes;
  double most = 1;
};

class FormulaDrawer {
public:
  explicit FormulaDrawer(uint64_t seed) : random(seed) {}

  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  bool oneIn(int64_t count) { return from(1, count) == 1; }
  template <typename T> const T &anyOf(const std::vector<T> &list) {
    return list[static_cast<size_t>(from(0, static_cast<int64_t>(list.size()) - 1))];
  }
  // In [-1, 1], with few digits, so that many sums are exact.
  double number();

  // An f32 whose axes are among `axes`. `depth` bounds how many operations stand in each other.
  Known formula(const AxisNames &axes, int depth);
  // The same, which certainly has the axes of `has`.
  Known formulaWith(const Known &has, const AxisNames &axes, int depth);
  // An i32, and a bool. A bool is made of i32 alone where rounding must not decide.
  Known index(const AxisNames &axes, int depth);
  std::string condition(const AxisNames &axes, int depth, bool isExact = false);
  // The value, not above `most` and not below `-most`.
  static Known clamped(const Known &value, double most);

  // Blocks of the program hide what they declared.
  size_t mark() const { return numbers.size(); }
  void forgetSince(size_t mark) { numbers.resize(mark); }

  std::vector<Known> numbers;         // f32 or io
  std::vector<Known> indices;         // i32
  std::vector<std::string> functions; // of two f32, whose results are at most 8
  std::mt19937_64 random;

private:
  Known joined(const Known &left, const Known &right, int which);
  Known leaf(const AxisNames &axes);
};

std::string literal(double value);

} // namespace nsa::test::tile
