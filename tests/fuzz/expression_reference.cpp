#include "tests/fuzz/expression_reference.h"

#include "runtime/base/text.h"
#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <string>

namespace nsa::fuzz {
namespace {

using Wide = __int128;

// `counts` goes down with every call: what stands in a branch that is not taken cannot fail.
class ReferenceEvaluator {
public:
  ReferenceEvaluator(std::string_view text, const Values &values) : rest(text), values(values) {}

  std::optional<int64_t> run() {
    const Wide value = ternary(true);
    skipSpace();
    expect(rest.empty(), "the reference reads all that is accepted");
    return failed ? std::nullopt : std::optional(static_cast<int64_t>(value));
  }

private:
  void skipSpace() { rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size())); }

  bool accept(std::string_view token) {
    skipSpace();
    if (!rest.starts_with(token))
      return false;
    rest.remove_prefix(token.size());
    return true;
  }

  // The value, if it may be one.
  Wide fits(bool counts, Wide value, bool isValid = true) {
    const bool isGood = isValid && value >= INT64_MIN && value <= INT64_MAX;
    failed = failed || (counts && !isGood);
    return isGood ? value : 0;
  }

  Wide ternary(bool counts) {
    const Wide condition = either(counts);
    if (!accept("?"))
      return condition;
    const Wide yes = ternary(counts && condition != 0);
    accept(":");
    const Wide no = ternary(counts && condition == 0);
    return condition != 0 ? yes : no;
  }

  Wide either(bool counts) {
    Wide value = both(counts);
    while (accept("||")) {
      const Wide right = both(counts && value == 0);
      value = value != 0 || right != 0;
    }
    return value;
  }

  Wide both(bool counts) {
    Wide value = comparison(counts);
    while (accept("&&")) {
      const Wide right = comparison(counts && value != 0);
      value = value != 0 && right != 0;
    }
    return value;
  }

  Wide comparison(bool counts) {
    const Wide a = sum(counts);
    if (accept("<="))
      return a <= sum(counts);
    if (accept(">="))
      return a >= sum(counts);
    if (accept("=="))
      return a == sum(counts);
    if (accept("!="))
      return a != sum(counts);
    if (accept("<"))
      return a < sum(counts);
    if (accept(">"))
      return a > sum(counts);
    return a;
  }

  Wide sum(bool counts) {
    Wide value = product(counts);
    for (;;) {
      if (accept("+"))
        value = fits(counts, value + product(counts));
      else if (accept("-"))
        value = fits(counts, value - product(counts));
      else
        return value;
    }
  }

  Wide product(bool counts) {
    Wide value = unary(counts);
    for (;;) {
      if (accept("*")) {
        value = fits(counts, value * unary(counts));
        continue;
      }
      const bool divides = accept("/");
      if (!divides && !accept("%"))
        return value;
      const Wide by = unary(counts);
      // Of the least number by -1 neither the quotient nor the rest is given.
      const bool isValid = by != 0 && !(value == INT64_MIN && by == -1);
      value = fits(counts, !isValid ? 0 : divides ? value / by : value % by, isValid);
    }
  }

  Wide unary(bool counts) {
    if (accept("-"))
      return fits(counts, -unary(counts));
    if (accept("!"))
      return unary(counts) == 0;
    return primary(counts);
  }

  Wide primary(bool counts) {
    if (accept("(")) {
      const Wide value = ternary(counts);
      accept(")");
      return value;
    }
    const auto isOfWord = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto end = static_cast<size_t>(std::ranges::find_if_not(rest, isOfWord) - rest.begin());
    const std::string word(rest.substr(0, end));
    rest.remove_prefix(end);
    if (accept("("))
      return call(counts, word);
    int64_t value = 0;
    expect(parseInteger(word, value) || values.lookup(word, value), "a word is a number or a name");
    return value;
  }

  Wide call(bool counts, const std::string &function) {
    const Wide a = ternary(counts);
    if (function == "abs") {
      accept(")");
      return fits(counts, a < 0 ? -a : a);
    }
    accept(",");
    const Wide b = ternary(counts);
    accept(")");
    if (function == "min" || function == "max")
      return function == "min" ? std::min(a, b) : std::max(a, b);
    const bool isValid = b >= 1;
    const Wide quotient = !isValid ? 0 : a / b + (a % b > 0 ? 1 : 0);
    return fits(counts, function == "ceildiv" ? quotient : quotient * b, isValid);
  }

  std::string_view rest;
  const Values &values;
  bool failed = false;
};

} // namespace

std::optional<int64_t> evaluateReference(std::string_view text, const Values &values) {
  return ReferenceEvaluator(text, values).run();
}

} // namespace nsa::fuzz
