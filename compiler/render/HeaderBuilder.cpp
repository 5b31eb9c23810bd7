#include "compiler/render/HeaderBuilder.h"

#include "compiler/render/Declarations.h"
#include "compiler/render/Values.h"
#include "runtime/base/kernel_arguments.h"
#include "runtime/base/kernel_constants.h"
#include "runtime/base/text.h"

#include <algorithm>

namespace nsa {

HeaderBuilder::HeaderBuilder(std::string file, TemplateKind kind) : place{.file = file} {
  header.file = std::move(file);
  header.kind = kind;
}

Status HeaderBuilder::fail(std::string rule, std::string hint) const {
  return templateError(place, std::move(rule), std::move(hint));
}

Status HeaderBuilder::declare(std::string_view name) {
  if (!isTemplateName(name))
    return fail("expected a name, found " + quoted(name));
  int64_t unused;
  if (lookupEnumerator(name, unused))
    return fail(quoted(name) + " is the name of an operator or dtype");
  if (lookupKernelConstant(name, unused))
    return fail(quoted(name) + " is a constant of all kernels and cannot be declared");
  for (const DriverValue &value : driverValues())
    if (value.name == name)
      return fail(quoted(name) + " is given by the target and cannot be declared");
  if (name == kFactsHole || name == kArgumentsHole)
    return fail(quoted(name) + " is given by the header and cannot be declared");
  if (!declared.emplace(name).second)
    return fail(quoted(name) + " is declared twice");
  return Status::ok();
}

Status HeaderBuilder::parseExpression(std::string_view text, bool atLaunch, Expression &result) const {
  Result<Expression> parsed = Expression::parse(text);
  if (!parsed)
    return templateError(place, parsed.status());
  for (const std::string &name : parsed->names())
    NSA_RETURN_IF_ERROR(checkName(name, atLaunch));
  result = std::move(*parsed);
  return Status::ok();
}

Status HeaderBuilder::checkName(const std::string &name, bool atLaunch) const {
  int64_t unused;
  if (declared.count(name) || lookupEnumerator(name, unused) || lookupKernelConstant(name, unused))
    return Status::ok();
  for (const DriverValue &value : driverValues())
    if (value.name == name)
      return value.isNumber ? Status::ok() : fail(quoted(name) + " is text and cannot stand in an expression");
  if (scalars ? scalars->contains(name) : findGridSize(name) != nullptr)
    return atLaunch ? Status::ok() : fail(quoted(name) + " is known at launch only and may stand in 'grid' only");
  return fail("unknown name " + quoted(name), "declare it with fixed, const or choice on an earlier line");
}

Status HeaderBuilder::parseLine(std::string_view text, TemplateHeader::Line &result) const {
  result.place = place;
  return parseExpression(text, /*atLaunch=*/false, result.expression);
}

Status HeaderBuilder::addOperator(std::string_view name) {
  Result<Operator> op = parseOperator(name);
  if (!op)
    return templateError(place, op.status());
  if (header.serves(*op))
    return fail("operator " + quoted(name) + " stands twice");
  header.operators.push_back(*op);
  return Status::ok();
}

Status HeaderBuilder::addFixed(std::string_view name, std::string_view condition) {
  TemplateHeader::Fixed fixed;
  if (!condition.empty())
    NSA_RETURN_IF_ERROR(parseLine(condition, fixed.condition));
  NSA_RETURN_IF_ERROR(declare(name));
  fixed.name = std::string(name);
  header.fixed.push_back(std::move(fixed));
  return Status::ok();
}

Status HeaderBuilder::addConstant(std::string_view name, std::string_view expression) {
  TemplateHeader::Step step;
  step.place = place;
  // The name is declared after the expression was read, so a constant cannot use itself.
  NSA_RETURN_IF_ERROR(parseExpression(expression, /*atLaunch=*/false, step.expression));
  NSA_RETURN_IF_ERROR(declare(name));
  step.name = std::string(name);
  header.steps.push_back(std::move(step));
  return Status::ok();
}

Status HeaderBuilder::addRequire(std::string_view expression) {
  TemplateHeader::Step step;
  step.isRequire = true;
  step.place = place;
  NSA_RETURN_IF_ERROR(parseExpression(expression, /*atLaunch=*/false, step.expression));
  header.steps.push_back(std::move(step));
  return Status::ok();
}

Status HeaderBuilder::addChoice(std::string_view name) {
  NSA_RETURN_IF_ERROR(declare(name));
  header.choices.push_back({.name = std::string(name), .values = {}});
  return Status::ok();
}

Status HeaderBuilder::addChoiceValue(int64_t value) {
  std::vector<int64_t> &values = header.choices.back().values;
  if (std::ranges::find(values, value) != values.end())
    return fail("the choice names '" + std::to_string(value) + "' twice");
  values.push_back(value);
  return Status::ok();
}

} // namespace nsa
