#include "runtime/base/expression.h"

#include <algorithm>
#include <charconv>

namespace nsa {

// A postfix program. Conditions jump, so the branch not taken is not evaluated and may divide by zero.
enum class Expression::Op : uint8_t {
  kPush,       // operand: the value
  kLoad,       // operand: index into the names
  kJump,       // operand: index of the next instruction
  kJumpIfZero, // pops the condition
  kBool,
  kNot,
  kNegate,
  kAbs,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kMin,
  kMax,
  kCeilDiv,
  kRoundUp,
};

namespace {

// Bounds the parser's recursion and the evaluator's stack, so that no text can exhaust either.
constexpr int kMaxNesting = 128;
constexpr int kMaxStack = 64;

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isBlank(char c) { return c == ' ' || c == '\t'; }

// The quotient rounded towards positive infinity. False on a divisor below 1 (sizes and tiles are positive).
bool ceilDivide(int64_t a, int64_t b, int64_t &result) {
  if (b < 1)
    return false;
  result = a / b + (a % b > 0 ? 1 : 0);
  return true;
}

} // namespace

// Recursive descent over the text; each method parses one level of precedence and emits its postfix form.
class ExpressionParser {
public:
  using Op = Expression::Op;
  ExpressionParser(std::string_view text, Expression &result) : text(text), result(result) {}

  Status run() {
    NSA_RETURN_IF_ERROR(parseTernary());
    skipSpace();
    if (position != text.size())
      return fail("expected an operator or the end");
    return Status::ok();
  }

private:
  Status fail(const std::string &what) const {
    std::string found = position < text.size() ? "'" + std::string(1, text[position]) + "'" : "the end";
    return Status::invalid("expression", "'" + std::string(text) + "'",
                           what + " at column " + std::to_string(position + 1) + ", found " + found);
  }

  void skipSpace() {
    while (position < text.size() && isBlank(text[position]))
      ++position;
  }

  bool accept(std::string_view token) {
    skipSpace();
    if (!text.substr(position).starts_with(token))
      return false;
    position += token.size();
    return true;
  }

  Status expect(std::string_view token) {
    return accept(token) ? Status::ok() : fail("expected '" + std::string(token) + "'");
  }

  size_t emit(Op op, int64_t operand = 0) {
    result.program.push_back({op, operand});
    return result.program.size() - 1;
  }
  void jumpHere(size_t jump) { result.program[jump].operand = static_cast<int64_t>(result.program.size()); }

  // The two arms of a condition leave one value between them, so the depth is counted once.
  Status push(Op op, int64_t operand) {
    if (++depth > kMaxStack)
      return fail("more than " + std::to_string(kMaxStack) + " operands pending");
    emit(op, operand);
    return Status::ok();
  }
  void binary(Op op) {
    emit(op);
    --depth;
  }

  Status parseTernary() {
    if (++nesting > kMaxNesting)
      return fail("nested deeper than " + std::to_string(kMaxNesting));
    NSA_RETURN_IF_ERROR(parseOr());
    if (accept("?")) {
      size_t toElse = emit(Op::kJumpIfZero);
      --depth;
      NSA_RETURN_IF_ERROR(parseTernary());
      NSA_RETURN_IF_ERROR(expect(":"));
      size_t toEnd = emit(Op::kJump);
      --depth;
      jumpHere(toElse);
      NSA_RETURN_IF_ERROR(parseTernary());
      jumpHere(toEnd);
    }
    --nesting;
    return Status::ok();
  }

  Status parseOr() {
    NSA_RETURN_IF_ERROR(parseAnd());
    while (accept("||")) {
      size_t toRight = emit(Op::kJumpIfZero);
      emit(Op::kPush, 1);
      size_t toEnd = emit(Op::kJump);
      --depth;
      jumpHere(toRight);
      NSA_RETURN_IF_ERROR(parseAnd());
      emit(Op::kBool);
      jumpHere(toEnd);
    }
    return Status::ok();
  }

  Status parseAnd() {
    NSA_RETURN_IF_ERROR(parseComparison());
    while (accept("&&")) {
      size_t toFalse = emit(Op::kJumpIfZero);
      --depth;
      NSA_RETURN_IF_ERROR(parseComparison());
      emit(Op::kBool);
      size_t toEnd = emit(Op::kJump);
      jumpHere(toFalse);
      emit(Op::kPush, 0);
      jumpHere(toEnd);
    }
    return Status::ok();
  }

  bool acceptComparison(Op &op) {
    static constexpr struct {
      std::string_view token;
      Op op;
    } kComparisons[] = {{"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual}, {"==", Op::kEqual},
                        {"!=", Op::kNotEqual},  {"<", Op::kLess},          {">", Op::kGreater}};
    for (const auto &entry : kComparisons)
      if (accept(entry.token)) {
        op = entry.op;
        return true;
      }
    return false;
  }

  Status parseComparison() {
    NSA_RETURN_IF_ERROR(parseSum());
    Op op;
    if (!acceptComparison(op))
      return Status::ok();
    NSA_RETURN_IF_ERROR(parseSum());
    binary(op);
    // `a < b < c` would compare a truth value with c, which is never meant.
    size_t before = position;
    if (acceptComparison(op)) {
      position = before;
      return fail("comparisons do not chain, join them with '&&'");
    }
    return Status::ok();
  }

  Status parseSum() {
    NSA_RETURN_IF_ERROR(parseProduct());
    for (;;) {
      Op op;
      if (accept("+"))
        op = Op::kAdd;
      else if (accept("-"))
        op = Op::kSubtract;
      else
        return Status::ok();
      NSA_RETURN_IF_ERROR(parseProduct());
      binary(op);
    }
  }

  Status parseProduct() {
    NSA_RETURN_IF_ERROR(parseUnary());
    for (;;) {
      Op op;
      if (accept("*"))
        op = Op::kMultiply;
      else if (accept("/"))
        op = Op::kDivide;
      else if (accept("%"))
        op = Op::kModulo;
      else
        return Status::ok();
      NSA_RETURN_IF_ERROR(parseUnary());
      binary(op);
    }
  }

  Status parseUnary() {
    if (++nesting > kMaxNesting)
      return fail("nested deeper than " + std::to_string(kMaxNesting));
    if (accept("-")) {
      NSA_RETURN_IF_ERROR(parseUnary());
      emit(Op::kNegate);
    } else if (accept("!")) {
      NSA_RETURN_IF_ERROR(parseUnary());
      emit(Op::kNot);
    } else {
      NSA_RETURN_IF_ERROR(parsePrimary());
    }
    --nesting;
    return Status::ok();
  }

  Status parsePrimary() {
    if (accept("(")) {
      NSA_RETURN_IF_ERROR(parseTernary());
      return expect(")");
    }
    if (position < text.size() && isDigit(text[position]))
      return parseNumber();
    if (position < text.size() && isNameStart(text[position]))
      return parseNameOrCall();
    return fail("expected a number, a name or '('");
  }

  Status parseNumber() {
    int64_t value = 0;
    const char *end = text.data() + text.size();
    auto [next, error] = std::from_chars(text.data() + position, end, value);
    if (error != std::errc())
      return fail("number does not fit 64 bits");
    size_t after = static_cast<size_t>(next - text.data());
    if (after < text.size() && (isNameStart(text[after]) || text[after] == '.')) {
      position = after;
      return fail("numbers are decimal integers");
    }
    NSA_RETURN_IF_ERROR(push(Op::kPush, value));
    position = after;
    return Status::ok();
  }

  Status parseNameOrCall() {
    size_t begin = position;
    while (position < text.size() && (isNameStart(text[position]) || isDigit(text[position])))
      ++position;
    std::string_view name = text.substr(begin, position - begin);
    static constexpr struct {
      std::string_view name;
      Op op;
      bool isUnary = false;
    } kFunctions[] = {{"abs", Op::kAbs, true},
                      {"min", Op::kMin},
                      {"max", Op::kMax},
                      {"ceildiv", Op::kCeilDiv},
                      {"roundup", Op::kRoundUp}};
    if (!accept("(")) {
      // A number put in the place of such a name would be put in the place of the function, too.
      for (const auto &function : kFunctions)
        if (name == function.name) {
          position = begin;
          return fail("'" + std::string(name) + "' is a function and needs its arguments");
        }
      auto found = std::find(result.nameList.begin(), result.nameList.end(), name);
      auto slot = static_cast<int64_t>(found - result.nameList.begin());
      if (found == result.nameList.end())
        result.nameList.emplace_back(name);
      return push(Op::kLoad, slot);
    }
    for (const auto &function : kFunctions)
      if (name == function.name) {
        NSA_RETURN_IF_ERROR(parseTernary());
        if (!function.isUnary) {
          NSA_RETURN_IF_ERROR(expect(","));
          NSA_RETURN_IF_ERROR(parseTernary());
        }
        NSA_RETURN_IF_ERROR(expect(")"));
        if (function.isUnary)
          emit(function.op);
        else
          binary(function.op);
        return Status::ok();
      }
    position = begin;
    return fail("unknown function '" + std::string(name) + "' (known: abs, min, max, ceildiv, roundup)");
  }

  std::string_view text;
  Expression &result;
  size_t position = 0;
  int nesting = 0;
  int depth = 0;
};

Result<Expression> Expression::parse(std::string_view text) {
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back()))
    text.remove_suffix(1);
  Expression result;
  result.source = std::string(text);
  NSA_RETURN_IF_ERROR(ExpressionParser(result.source, result).run());
  return result;
}

Result<int64_t> Expression::evaluate(std::span<const int64_t> values) const {
  assert(values.size() == nameList.size() && "one value per name");
  if (program.empty())
    return int64_t{1};
  auto fail = [&](int64_t a, const char *op, int64_t b, const char *rule) {
    return Status::invalid("expression", "'" + source + "'",
                           std::to_string(a) + " " + op + " " + std::to_string(b) + " " + rule);
  };
  constexpr const char *kOverflow = "overflows 64 bits";
  int64_t stack[kMaxStack];
  int top = -1; // index of the topmost value
  for (size_t pc = 0; pc < program.size(); ++pc) {
    const Instruction &instruction = program[pc];
    switch (instruction.op) {
    case Op::kPush:
      stack[++top] = instruction.operand;
      continue;
    case Op::kLoad:
      stack[++top] = values[static_cast<size_t>(instruction.operand)];
      continue;
    case Op::kJump:
      pc = static_cast<size_t>(instruction.operand) - 1;
      continue;
    case Op::kJumpIfZero:
      if (stack[top--] == 0)
        pc = static_cast<size_t>(instruction.operand) - 1;
      continue;
    case Op::kBool:
      stack[top] = stack[top] != 0;
      continue;
    case Op::kNot:
      stack[top] = stack[top] == 0;
      continue;
    case Op::kNegate:
      if (__builtin_sub_overflow(int64_t{0}, stack[top], &stack[top]))
        return fail(0, "-", INT64_MIN, kOverflow);
      continue;
    case Op::kAbs:
      if (stack[top] < 0 && __builtin_sub_overflow(int64_t{0}, stack[top], &stack[top]))
        return fail(0, "-", INT64_MIN, kOverflow);
      continue;
    default:
      break;
    }

    int64_t b = stack[top--];
    int64_t a = stack[top];
    int64_t &out = stack[top];
    switch (instruction.op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &out))
        return fail(a, "+", b, kOverflow);
      break;
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &out))
        return fail(a, "-", b, kOverflow);
      break;
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &out))
        return fail(a, "*", b, kOverflow);
      break;
    case Op::kDivide:
    case Op::kModulo: {
      const char *name = instruction.op == Op::kDivide ? "/" : "%";
      if (b == 0)
        return fail(a, name, b, "divides by zero");
      if (a == INT64_MIN && b == -1)
        return fail(a, name, b, kOverflow);
      out = instruction.op == Op::kDivide ? a / b : a % b;
      break;
    }
    case Op::kLess:
      out = a < b;
      break;
    case Op::kLessEqual:
      out = a <= b;
      break;
    case Op::kGreater:
      out = a > b;
      break;
    case Op::kGreaterEqual:
      out = a >= b;
      break;
    case Op::kEqual:
      out = a == b;
      break;
    case Op::kNotEqual:
      out = a != b;
      break;
    case Op::kMin:
      out = std::min(a, b);
      break;
    case Op::kMax:
      out = std::max(a, b);
      break;
    case Op::kCeilDiv:
      if (!ceilDivide(a, b, out))
        return fail(a, "ceildiv", b, "needs a divisor of at least 1");
      break;
    case Op::kRoundUp: {
      int64_t multiples;
      if (!ceilDivide(a, b, multiples))
        return fail(a, "roundup", b, "needs a multiple of at least 1");
      if (__builtin_mul_overflow(multiples, b, &out))
        return fail(a, "roundup", b, kOverflow);
      break;
    }
    default:
      assert(false && "not a binary instruction");
    }
  }
  assert(top == 0 && "a program leaves one value");
  return stack[0];
}

Result<int64_t> Expression::evaluate(const std::function<bool(std::string_view, int64_t &)> &lookup) const {
  // Every name is looked up, also in a branch not taken: a misspelt name must not hide behind a condition.
  std::vector<int64_t> values(nameList.size());
  for (size_t i = 0; i < nameList.size(); ++i)
    if (!lookup(nameList[i], values[i]))
      return Status::invalid("expression", "'" + source + "'", "unknown name '" + nameList[i] + "'");
  return evaluate(values);
}

} // namespace nsa
