// Constants of the tile language: numbers that are known when a kernel is compiled, and the words that `op`, `dtype`
// and the like are compared with. Thread-safety: pure functions.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Expressions.h"

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace nsa::language {

struct Constant {
  enum class Kind : uint8_t { kInteger, kReal, kBool, kWord };

  Kind kind = Kind::kInteger;
  int64_t integer = 0; // of a bool 0 or 1
  double real = 0;     // of an integer, too
  std::string_view word;

  static Constant ofInteger(int64_t value) { return {Kind::kInteger, value, static_cast<double>(value), {}}; }
  static Constant ofReal(double value) { return {Kind::kReal, 0, value, {}}; }
  static Constant ofBool(bool value) { return {Kind::kBool, value, value ? 1.0 : 0.0, {}}; }
  static Constant ofWord(std::string_view value) { return {Kind::kWord, 0, 0, value}; }

  bool isNumber() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  bool isTrue() const { return kind == Kind::kReal ? real != 0 : integer != 0; }
  // By the bits of a real number: 0.0 and -0.0 differ, because 1 / x tells them apart.
  bool operator==(const Constant &other) const {
    return kind == other.kind && integer == other.integer &&
           std::bit_cast<uint64_t>(real) == std::bit_cast<uint64_t>(other.real) && word == other.word;
  }
};

// "12", "0.5", "true", "window"
std::string toString(const Constant &constant);

// What the caller knows about the problem, the target and the candidate: fixed values, choices, `op`, `cpu`, `dot_step`
// and so on, each as a number or a word.
using GivenValues = std::map<std::string, std::string, std::less<>>;

// The constant that the text of a given value stands for. The result may point into `text`.
Constant givenConstant(std::string_view text);

// The value of an expression of constants: 64-bit integers, in which a bool is 0 or 1, and words. `lookup` finds names.
// What `?:`, `&&` and `||` do not choose is not computed. Reports what is no constant, and returns nothing then.
std::optional<Constant> evaluateConstant(const Expr *expr,
                                         const std::function<std::optional<Constant>(std::string_view)> &lookup,
                                         Diagnostics &diagnostics);

// One operation of constants in the body of a program, where a number with a point is real and comparisons are bool.
// Nothing, if it is none or has no result (a division by zero).
std::optional<Constant> foldConstants(BinaryOp op, const Constant &left, const Constant &right);

} // namespace nsa::language
