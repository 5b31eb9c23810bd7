#include "compiler/language/types/Constants.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>

namespace nsa::language {

namespace {

using Lookup = std::function<std::optional<Constant>(std::string_view)>;

// The arithmetic of 64-bit integers that wraps around: a program may say anything, and must not stop the compiler.
int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }
int64_t added(int64_t a, int64_t b) { return wrapped(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t subtracted(int64_t a, int64_t b) { return wrapped(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
int64_t multiplied(int64_t a, int64_t b) { return wrapped(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

bool canDivide(int64_t a, int64_t b) { return b != 0 && !(b == -1 && a == std::numeric_limits<int64_t>::min()); }

class Evaluator {
public:
  Evaluator(const Lookup &lookup, Diagnostics &diagnostics) : lookup(lookup), diagnostics(diagnostics) {}

  std::optional<Constant> value(const Expr *expr) {
    switch (expr->kind) {
    case ExprKind::kNumber: {
      const auto &number = as<NumberExpr>(*expr);
      if (number.isInteger)
        return Constant::ofInteger(number.integer);
      return refuse(expr, "a constant is an integer");
    }
    case ExprKind::kBool:
      return Constant::ofInteger(as<BoolExpr>(*expr).value);
    case ExprKind::kName: {
      std::optional<Constant> found = lookup(as<NameExpr>(*expr).text);
      if (!found)
        diagnostics.error(expr->range, "'" + std::string(as<NameExpr>(*expr).text) + "' is no constant");
      return found;
    }
    case ExprKind::kUnary:
      return unary(as<UnaryExpr>(*expr));
    case ExprKind::kBinary:
      return binary(as<BinaryExpr>(*expr));
    case ExprKind::kConditional: {
      const auto &choice = as<ConditionalExpr>(*expr);
      std::optional<int64_t> condition = integer(choice.condition);
      return condition ? value(*condition ? choice.ifTrue : choice.ifFalse) : std::nullopt;
    }
    case ExprKind::kCall:
      return call(as<CallExpr>(*expr));
    default:
      return refuse(expr, "this is no constant");
    }
  }

private:
  std::optional<Constant> refuse(const Expr *expr, std::string text) {
    diagnostics.error(expr->range, std::move(text))
        .hint("constants are made of integers, names, operators, abs, min, max, ceildiv and roundup");
    return std::nullopt;
  }

  std::optional<int64_t> integer(const Expr *expr) {
    std::optional<Constant> found = value(expr);
    if (!found)
      return std::nullopt;
    if (found->kind == Constant::Kind::kWord) {
      diagnostics.error(expr->range, "'" + std::string(found->word) + "' is a word, and can only be compared");
      return std::nullopt;
    }
    return found->integer;
  }

  std::optional<Constant> unary(const UnaryExpr &expr) {
    std::optional<int64_t> operand = integer(expr.operand);
    if (!operand)
      return std::nullopt;
    return expr.op == UnaryOp::kNegate ? negated(*operand, expr.range) : Constant::ofInteger(*operand == 0);
  }

  std::optional<Constant> negated(int64_t operand, const SourceRange &range) {
    if (operand == std::numeric_limits<int64_t>::min()) {
      diagnostics.error(range, "a constant has 64 bits, and this one needs more");
      return std::nullopt;
    }
    return Constant::ofInteger(-operand);
  }

  std::optional<Constant> binary(const BinaryExpr &expr) {
    if (expr.op == BinaryOp::kAnd || expr.op == BinaryOp::kOr) {
      std::optional<int64_t> left = integer(expr.left);
      if (!left)
        return std::nullopt;
      if ((*left != 0) == (expr.op == BinaryOp::kOr))
        return Constant::ofInteger(expr.op == BinaryOp::kOr);
      std::optional<int64_t> right = integer(expr.right);
      return right ? std::optional(Constant::ofInteger(*right != 0)) : std::nullopt;
    }
    std::optional<Constant> left = value(expr.left), right = value(expr.right);
    if (!left || !right)
      return std::nullopt;
    if (left->kind == Constant::Kind::kWord || right->kind == Constant::Kind::kWord) {
      if (expr.op != BinaryOp::kEqual && expr.op != BinaryOp::kUnequal)
        return refuse(&expr, "words can only be compared with == and !=");
      const bool equal = left->kind == right->kind && left->word == right->word;
      return Constant::ofInteger(equal == (expr.op == BinaryOp::kEqual));
    }
    int64_t ignored = 0;
    const bool overflows =
        (expr.op == BinaryOp::kAdd && __builtin_add_overflow(left->integer, right->integer, &ignored)) ||
        (expr.op == BinaryOp::kSubtract && __builtin_sub_overflow(left->integer, right->integer, &ignored)) ||
        (expr.op == BinaryOp::kMultiply && __builtin_mul_overflow(left->integer, right->integer, &ignored));
    if (overflows) {
      diagnostics.error(expr.opRange, "a constant has 64 bits, and this one needs more");
      return std::nullopt;
    }
    std::optional<Constant> result = foldConstants(expr.op, *left, *right);
    if (!result)
      return refuse(&expr, "division by zero");
    return Constant::ofInteger(result->integer);
  }

  std::optional<Constant> call(const CallExpr &expr) {
    const std::string_view callee = expr.callee.text;
    if (callee == "abs" && expr.arguments.size() == 1 && expr.over.empty()) {
      std::optional<int64_t> operand = integer(expr.arguments[0]);
      if (!operand)
        return std::nullopt;
      return *operand < 0 ? negated(*operand, expr.range) : Constant::ofInteger(*operand);
    }
    const bool known = callee == "min" || callee == "max" || callee == "ceildiv" || callee == "roundup";
    if (!known || expr.arguments.size() != 2 || !expr.over.empty())
      return refuse(&expr, "this is no constant");
    std::optional<int64_t> left = integer(expr.arguments[0]), right = integer(expr.arguments[1]);
    if (!left || !right)
      return std::nullopt;
    if (callee == "min")
      return Constant::ofInteger(std::min(*left, *right));
    if (callee == "max")
      return Constant::ofInteger(std::max(*left, *right));
    if (*right <= 0)
      return refuse(&expr, std::string(callee) + " wants a positive divisor");
    const int64_t floor = *left / *right - (*left % *right < 0);
    const int64_t ceiling = added(floor, *left % *right != 0);
    return Constant::ofInteger(callee == "ceildiv" ? ceiling : multiplied(ceiling, *right));
  }

  const Lookup &lookup;
  Diagnostics &diagnostics;
};

} // namespace

std::string toString(const Constant &constant) {
  switch (constant.kind) {
  case Constant::Kind::kInteger:
    return std::to_string(constant.integer);
  case Constant::Kind::kBool:
    return constant.integer ? "true" : "false";
  case Constant::Kind::kWord:
    return std::string(constant.word);
  case Constant::Kind::kReal:
    break;
  }
  char text[40];
  std::snprintf(text, sizeof(text), "%g", constant.real);
  return text;
}

Constant givenConstant(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty())
    return Constant::ofInteger(number);
  return Constant::ofWord(text);
}

std::optional<Constant> evaluateConstant(const Expr *expr, const Lookup &lookup, Diagnostics &diagnostics) {
  return Evaluator(lookup, diagnostics).value(expr);
}

std::optional<Constant> foldConstants(BinaryOp op, const Constant &left, const Constant &right) {
  using enum BinaryOp;
  const bool isReal = left.kind == Constant::Kind::kReal || right.kind == Constant::Kind::kReal;
  const int64_t a = left.integer, b = right.integer;
  switch (op) {
  case kAdd:
    return isReal ? Constant::ofReal(left.real + right.real) : Constant::ofInteger(added(a, b));
  case kSubtract:
    return isReal ? Constant::ofReal(left.real - right.real) : Constant::ofInteger(subtracted(a, b));
  case kMultiply:
    return isReal ? Constant::ofReal(left.real * right.real) : Constant::ofInteger(multiplied(a, b));
  case kDivide:
    if (isReal)
      return Constant::ofReal(left.real / right.real);
    return canDivide(a, b) ? std::optional(Constant::ofInteger(a / b)) : std::nullopt;
  case kRemainder:
    return !isReal && canDivide(a, b) ? std::optional(Constant::ofInteger(a % b)) : std::nullopt;
  case kEqual:
    return Constant::ofBool(isReal ? left.real == right.real : a == b);
  case kUnequal:
    return Constant::ofBool(isReal ? left.real != right.real : a != b);
  case kLess:
    return Constant::ofBool(isReal ? left.real < right.real : a < b);
  case kLessEqual:
    return Constant::ofBool(isReal ? left.real <= right.real : a <= b);
  case kGreater:
    return Constant::ofBool(isReal ? left.real > right.real : a > b);
  case kGreaterEqual:
    return Constant::ofBool(isReal ? left.real >= right.real : a >= b);
  case kAnd:
    return Constant::ofBool(left.isTrue() && right.isTrue());
  case kOr:
    return Constant::ofBool(left.isTrue() || right.isTrue());
  }
  return std::nullopt;
}

} // namespace nsa::language
