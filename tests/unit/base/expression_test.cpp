#include "runtime/base/expression.h"
#include "runtime/base/problem.h"

#include <gtest/gtest.h>

#include <map>

namespace nsa {
namespace {

using Values = std::map<std::string, int64_t, std::less<>>;

Result<int64_t> evaluate(std::string_view text, const Values &values = {}) {
  Result<Expression> expression = Expression::parse(text);
  if (!expression)
    return expression.status();
  return expression->evaluate([&](std::string_view name, int64_t &value) {
    auto found = values.find(name);
    if (found != values.end())
      value = found->second;
    return found != values.end() || lookupEnumerator(name, value);
  });
}

int64_t valueOf(std::string_view text, const Values &values = {}) {
  Result<int64_t> result = evaluate(text, values);
  EXPECT_TRUE(result) << text << ": " << result.status().toString();
  return result ? *result : -999;
}

std::string errorOf(std::string_view text) {
  Result<int64_t> result = evaluate(text);
  EXPECT_FALSE(result) << text;
  return result.status().toString();
}

TEST(Expression, DefaultIsOne) {
  Expression one;
  EXPECT_EQ(one.text(), "1");
  EXPECT_EQ(*one.evaluate(std::span<const int64_t>()), 1);
  EXPECT_EQ(one, *Expression::parse(" 1 "));
}

TEST(Expression, PrecedenceAndAssociativity) {
  EXPECT_EQ(valueOf("1 + 2 * 3"), 7);
  EXPECT_EQ(valueOf("(1 + 2) * 3"), 9);
  EXPECT_EQ(valueOf("10 - 4 - 3"), 3);
  EXPECT_EQ(valueOf("100 / 10 / 2"), 5);
  EXPECT_EQ(valueOf("17 % 5 * 2"), 4);
  EXPECT_EQ(valueOf("-2 * -3"), 6);
  EXPECT_EQ(valueOf("- - 2"), 2);
  EXPECT_EQ(valueOf("!0 + !5"), 1);
  EXPECT_EQ(valueOf("1 + 1 == 2 && 3 < 4 || 0"), 1);
  EXPECT_EQ(valueOf("1 || 0 && 0"), 1);
  EXPECT_EQ(valueOf("0 ? 1 : 0 ? 2 : 3"), 3);
  EXPECT_EQ(valueOf("1 ? 0 ? 2 : 4 : 3"), 4);
}

TEST(Expression, Comparisons) {
  EXPECT_EQ(valueOf("(1<2) + (2<=2) + (3>2) + (2>=3) + (4==4) + (4!=4)"), 4);
  EXPECT_EQ(valueOf("7 && 9"), 1);
  EXPECT_EQ(valueOf("0 || 9"), 1);
}

TEST(Expression, Functions) {
  EXPECT_EQ(valueOf("min(3, 4) + max(3, 4)"), 7);
  EXPECT_EQ(valueOf("abs(3 - 7) + 10 * abs(7 - 3)"), 44);
  EXPECT_EQ(valueOf("ceildiv(9, 4)"), 3);
  EXPECT_EQ(valueOf("ceildiv(8, 4)"), 2);
  EXPECT_EQ(valueOf("ceildiv(-7, 4)"), -1);
  EXPECT_EQ(valueOf("roundup(9, 4)"), 12);
  EXPECT_EQ(
      valueOf("ceildiv(max_seqlen_q * group, query_tile)", {{"max_seqlen_q", 2048}, {"group", 8}, {"query_tile", 64}}),
      256);
}

TEST(Expression, NamesInOrderOfFirstUse) {
  Expression expression = *Expression::parse("b + a * b + c");
  EXPECT_EQ(expression.names(), (std::vector<std::string>{"b", "a", "c"}));
  const int64_t values[] = {2, 3, 4};
  EXPECT_EQ(*expression.evaluate(values), 12);
}

TEST(Expression, OperatorAndTypeNamesCompare) {
  EXPECT_EQ(valueOf("op == window", {{"op", static_cast<int64_t>(Operator::kWindow)}}), 1);
  EXPECT_EQ(valueOf("op == dense", {{"op", static_cast<int64_t>(Operator::kWindow)}}), 0);
  EXPECT_EQ(valueOf("dtype == fp32 ? 4 : 2", {{"dtype", static_cast<int64_t>(DType::kF32)}}), 4);
}

TEST(Expression, BranchNotTakenMayDivideByZero) {
  EXPECT_EQ(valueOf("d == 0 ? 0 : 8 / d", {{"d", 0}}), 0);
  EXPECT_EQ(valueOf("d != 0 && 8 / d > 1", {{"d", 0}}), 0);
  EXPECT_EQ(valueOf("d == 0 || 8 / d > 1", {{"d", 0}}), 1);
}

TEST(Expression, UnknownNameIsAnErrorEvenWhereNotEvaluated) {
  EXPECT_NE(errorOf("1 ? 2 : nonsense").find("unknown name 'nonsense'"), std::string::npos);
}

TEST(Expression, ArithmeticIsChecked) {
  EXPECT_NE(errorOf("1 / 0").find("1 / 0 divides by zero"), std::string::npos);
  EXPECT_NE(errorOf("1 % 0").find("divides by zero"), std::string::npos);
  EXPECT_NE(errorOf("9223372036854775807 + 1").find("9223372036854775807 + 1 overflows"), std::string::npos);
  EXPECT_NE(errorOf("0 - 9223372036854775807 - 2").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("4611686018427387904 * 2").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("(-9223372036854775807 - 1) / -1").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("(-9223372036854775807 - 1) % -1").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("-(-9223372036854775807 - 1)").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("abs(-9223372036854775807 - 1)").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("roundup(9223372036854775807, 2)").find("overflows"), std::string::npos);
  EXPECT_NE(errorOf("ceildiv(4, 0)").find("divisor of at least 1"), std::string::npos);
  EXPECT_NE(errorOf("roundup(4, -2)").find("multiple of at least 1"), std::string::npos);
}

TEST(Expression, SyntaxErrorsNameTheColumn) {
  struct {
    const char *text, *expected;
  } cases[] = {
      {"", "expected a number, a name or '(' at column 1, found the end"},
      {"1 +", "expected a number, a name or '(' at column 4, found the end"},
      {"1 2", "expected an operator or the end at column 3, found '2'"},
      {"(1", "expected ')' at column 3, found the end"},
      {"a ? b", "expected ':' at column 6"},
      {"min(1)", "expected ',' at column 6, found ')'"},
      {"abs(1, 2)", "expected ')' at column 6, found ','"},
      {"sqrt(4)", "unknown function 'sqrt' (known: abs, min, max, ceildiv, roundup) at column 1"},
      {"min + 1", "'min' is a function and needs its arguments at column 1, found 'm'"},
      {"1.5", "numbers are decimal integers at column 2, found '.'"},
      {"64k", "numbers are decimal integers at column 3, found 'k'"},
      {"9223372036854775808", "number does not fit 64 bits at column 1"},
      {"1 < 2 < 3", "comparisons do not chain, join them with '&&' at column 7, found '<'"},
      {"a = b", "expected an operator or the end at column 3, found '='"},
      {"a & b", "expected an operator or the end at column 3, found '&'"},
      {"$", "expected a number, a name or '(' at column 1, found '$'"},
  };
  for (const auto &c : cases)
    EXPECT_NE(errorOf(c.text).find(c.expected), std::string::npos) << errorOf(c.text);
}

TEST(Expression, DepthIsBounded) {
  std::string deep = std::string(10000, '(') + "1" + std::string(10000, ')');
  EXPECT_NE(errorOf(deep).find("nested deeper"), std::string::npos);
  EXPECT_NE(errorOf(std::string(10000, '-') + "1").find("nested deeper"), std::string::npos);
  std::string right = "1";
  for (int i = 0; i < 60; ++i)
    right = "1+2*(" + right + ")";
  EXPECT_FALSE(evaluate(right));
  std::string wide = "1";
  for (int i = 0; i < 5000; ++i)
    wide += "+1";
  EXPECT_EQ(valueOf(wide), 5001);
}

} // namespace
} // namespace nsa
