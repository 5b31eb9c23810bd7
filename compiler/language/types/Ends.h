// Ends of formulas: in which direction a formula goes along an axis, and the scalar that it is at its first or last
// element that exists. Formulas need not be affine: `(first + iota(row)) / group` grows, and its ends are those of what
// it is made of.
// Thread-safety: none.
#pragma once

#include "compiler/language/types/Values.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace nsa::language {

// 1: grows along the axis, -1: falls, 0: does not depend on it. Nothing: neither, or not known.
std::optional<int> directionOf(const Value *formula, const Axis *axis);

// A sum of values, each times a number, and a number.
struct Sum {
  std::vector<std::pair<Value *, int64_t>> terms;
  int64_t number = 0;

  // Takes sums apart. Where `outside` is not 0, a formula that a let names in a block of less depth is one term.
  void add(Value *value, int64_t factor, uint32_t outside = 0);
  bool operator==(const Sum &) const = default;

private:
  void addTerm(Value *value, int64_t factor);
};

class Ends {
public:
  explicit Ends(ValueBuilder &builder) : builder(builder) {}

  // Where the ends of a formula that a let names are computed: here, once, if they are asked for.
  void anchor(Value *formula);

  // The last (`high`) or the first value of a formula, of what exists along its axes; along those of `full` of all
  // elements. Its directions are known. nullptr where it has no end that can be computed.
  Value *end(Value *formula, bool high, AxisSet full);

  // Whether `condition` is false wherever index < bound is, as the bound was made from an end: what a mask leaves out
  // anyway need not be left out again. For example index <= newest, and bound = high(newest) + 1.
  bool implies(const Value *condition, const Presence &presence) const;

private:
  struct Known {
    Value *low = nullptr, *high = nullptr;
  };

  Value *computed(Value *formula, bool high, AxisSet full);

  ValueBuilder &builder;
  std::unordered_map<const Value *, Known> known;
  std::unordered_map<const Value *, Value *> highOf; // from an end to the formula
};

} // namespace nsa::language
