// Integer expressions of the template header and the manifest (`require`, `let`, `cost`, `grid`).
// Grammar: 64-bit integers, names, + - * / %, < <= > >= == !=, && || !, ?:, parentheses, and
// min(a,b) max(a,b) ceildiv(a,b) roundup(a,b), whose names are no others'. Comparisons give 0 or 1. Division by zero
// and overflow are errors.
// Parsing happens once; evaluation allocates nothing when its names were bound to slots before.
// Thread-safety: an Expression is immutable after parsing and may be evaluated by many threads.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

class Expression {
public:
  Expression() = default; // the constant 1

  static Result<Expression> parse(std::string_view text);

  const std::string &text() const { return source; }
  // The distinct names in order of first use. `evaluate` takes their values in this order.
  const std::vector<std::string> &names() const { return nameList; }

  // values.size() == names().size(). Allocation-free.
  Result<int64_t> evaluate(std::span<const int64_t> values) const;
  // Looks each name up; `lookup` returns false for an unknown name, which is an error naming it.
  Result<int64_t> evaluate(const std::function<bool(std::string_view, int64_t &)> &lookup) const;

  bool operator==(const Expression &other) const { return source == other.source; }

private:
  enum class Op : uint8_t; // see expression.cpp
  struct Instruction {
    Op op;
    int64_t operand;
  };
  friend class ExpressionParser;
  std::string source = "1";
  std::vector<std::string> nameList;
  std::vector<Instruction> program; // postfix; empty: the constant 1
};

} // namespace nsa
