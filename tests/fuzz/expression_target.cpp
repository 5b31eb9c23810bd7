// Expressions of manifests and template headers: the text is the first line, the values of its names are drawn from
// what stands behind it.
#include "tests/fuzz/fuzz_target.h"

#include "compiler/render/Renderer.h"
#include "runtime/base/expression.h"
#include "tests/fuzz/expression_reference.h"

#include <algorithm>
#include <set>

namespace nsa::fuzz {
namespace {

std::string outcome(const Result<int64_t> &result) {
  return result ? std::to_string(*result) : result.status().error().rule;
}

void runExpression(std::string_view input) {
  const size_t end = std::min(input.find('\n'), input.size());
  Draw draw(input.substr(end));
  const Result<Expression> parsed = Expression::parse(input.substr(0, end));
  if (!parsed) {
    expect(parsed.status().code() == ErrorCode::kInvalidArgument && !parsed.status().error().rule.empty(),
           "what is refused names the rule");
    return;
  }
  const std::vector<std::string> &names = parsed->names();
  expect(std::set<std::string>(names.begin(), names.end()).size() == names.size(), "each name stands once in the list");

  for (const std::string_view function : {"min", "max", "ceildiv", "roundup"})
    expect(std::ranges::count(names, function) == 0, "a function's name is no name");

  std::vector<int64_t> values(names.size());
  Values known;
  for (size_t i = 0; i < names.size(); ++i) {
    values[i] = draw.number();
    known.set(names[i], values[i]);
  }
  const auto lookup = [&](std::string_view name, int64_t &value) { return known.lookup(name, value); };
  const Result<int64_t> result = parsed->evaluate(values);
  expect(outcome(parsed->evaluate(lookup)) == outcome(result), "values by name and by position give one result");

  const std::optional<int64_t> reference = evaluateReference(parsed->text(), known);
  expect(reference ? result && *result == *reference : !result, "the result is the reference's");

  const Result<Expression> again = Expression::parse(parsed->text());
  expect(again && *again == *parsed && again->names() == names, "what was printed is read as the same");
  expect(outcome(again->evaluate(values)) == outcome(result), "what was printed gives the same");

  // One level of nesting more may be one too many, and what is bound must fit its type.
  if (const Result<Expression> wrapped = Expression::parse("(" + parsed->text() + ")"))
    expect(wrapped->names() == names && outcome(wrapped->evaluate(values)) == outcome(result),
           "parentheses around the whole change nothing");
  if (const Result<Expression> bound = bindKnownNames(*parsed, known))
    expect(bound->names().empty() && outcome(bound->evaluate(std::span<const int64_t>())) == outcome(result),
           "numbers in the place of names give the same");
}

const Registration kExpression({"expression", runExpression});

} // namespace
} // namespace nsa::fuzz
