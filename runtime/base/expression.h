// Integer expressions of template headers and manifests (`require`, `let`, `cost`, `grid`).
// Grammar: 64-bit integers, names, + - * / %, < <= > >= == !=, && || !, ?:, parentheses, and the functions abs(a)
// min(a,b) max(a,b) ceildiv(a,b) roundup(a,b). A variable in an expression must not have the name of a function.
// Comparisons give 0 or 1. Division by zero and overflow are errors.
// An Expression parses its text once, when it is made. Evaluating an expression with an array of values allocates
// nothing.
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
  // The distinct names of an expression in the order of their first use. `evaluate` takes the values of names() in the
  // order of names().
  const std::vector<std::string> &names() const { return nameList; }

  // Returns whether the expression is one name, and so has that name's value. Most sizes of grids are one name.
  bool isName() const { return program.size() == 1 && !nameList.empty(); }

  // Computes the expression from one value for each name, so values.size() must be names().size(). Allocates nothing.
  Result<int64_t> evaluate(std::span<const int64_t> values) const;
  // Computes the expression from the value that the function `lookup` gives for each name. If `lookup` does not know a
  // name, it returns false, and `evaluate` returns an error that contains the name.
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
  std::vector<Instruction> program; // in postfix order; empty for the constant 1
};

} // namespace nsa
