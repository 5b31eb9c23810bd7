#include "compiler/language/types/Elaborator.h"

#include "compiler/language/syntax/Suggestion.h"

#include <algorithm>

namespace nsa::language {

namespace {

struct ElementFunction {
  std::string_view name;
  Op op;
  size_t arguments;
};
constexpr ElementFunction kElementFunctions[] = {
    {"min", Op::kMin, 2},   {"max", Op::kMax, 2},   {"fma", Op::kFma, 3},
    {"exp2", Op::kExp2, 1}, {"log2", Op::kLog2, 1}, {"erf", Op::kErf, 1},
    {"abs", Op::kAbs, 1},   {"sqrt", Op::kSqrt, 1}, {"roundeven", Op::kRoundEven, 1}};

std::string counted(size_t number, std::string_view what) {
  return std::to_string(number) + " " + std::string(what) + (number == 1 ? "" : "s");
}

} // namespace

Typed Elaborator::call(const CallExpr &expr) {
  const std::string_view callee = expr.callee.text;
  if (const FunctionItem *function = declarations.function(callee))
    return inlined(*function, expr);
  if (const Record *record = declarations.record(callee))
    return recordOf(*record, expr);
  const bool reduces = callee == "sum" || callee == "last" || (callee == "max" && !expr.over.empty());
  if (reduces || (callee == "max" && expr.arguments.size() == 1))
    return reduce(expr);
  if (callee == "iota") {
    const auto *name = expr.arguments.size() == 1 ? asIf<NameExpr>(expr.arguments[0]) : nullptr;
    if (!name)
      return fail(expr.range, "iota wants the name of an axis");
    const Axis *along = axis({name->text, name->range});
    return along ? Typed::of(builder.iota(along, expr.range)) : Typed();
  }
  if (callee == "low" || callee == "high")
    return endOf(expr, callee == "high");
  if (callee == "dot")
    return dot(expr, nullptr);
  if (callee == "mask")
    return mask(expr);
  if (callee == "present")
    return present(expr);
  if (callee == "stack")
    return stack(expr);
  if (callee == "shift")
    return shift(expr);
  if (callee == "top")
    return top(expr);
  if (callee == "next")
    return next(expr);
  if (!expr.over.empty())
    return fail(expr.range, "'" + std::string(callee) + "' has no axis to go over");
  std::vector<Typed> arguments;
  for (const Expr *argument : expr.arguments)
    if (!arguments.emplace_back(this->expr(*argument)))
      return {};
  if (callee == "ceildiv" && arguments.size() == 2) {
    // (a + (b - 1)) / b
    const Typed one = Typed::of(Constant::ofInteger(1));
    const Typed less = elementwise(Op::kSubtract, {arguments[1], one}, expr.range, expr.callee.range);
    const Typed rounded = elementwise(Op::kAdd, {arguments[0], less}, expr.range, expr.callee.range);
    return elementwise(Op::kDivide, {rounded, arguments[1]}, expr.range, expr.callee.range);
  }
  const auto *found = std::ranges::find(kElementFunctions, callee, &ElementFunction::name);
  if (found == std::end(kElementFunctions))
    return unknownFunction(expr.callee);
  if (arguments.size() != found->arguments)
    return fail(expr.range, "'" + std::string(callee) + "' takes " + counted(found->arguments, "value") + ", found " +
                                std::to_string(arguments.size()));
  return elementwise(found->op, arguments, expr.range, expr.callee.range);
}

Typed Elaborator::unknownFunction(const Name &callee) {
  // What other languages have, and this one says otherwise.
  static constexpr std::pair<std::string_view, std::string_view> kOtherwise[] = {
      {"exp", "exp2(x * log2_e)"}, {"log", "log2(x) * ln_2"}, {"ln", "log2(x) * ln_2"}, {"rsqrt", "1 / sqrt(x)"}};
  Diagnostic &message = error(callee.range, "unknown function '" + std::string(callee.text) + "'");
  const auto *written =
      std::ranges::find(kOtherwise, callee.text, &std::pair<std::string_view, std::string_view>::first);
  if (written != std::end(kOtherwise)) {
    message.hint("write " + std::string(written->second));
    return {};
  }
  std::vector<std::string_view> known = declarations.callees();
  known.insert(known.begin(), builtInFunctions().begin(), builtInFunctions().end());
  if (const std::string_view nearest = nearestWord(callee.text, known); !nearest.empty())
    message.hint("did you mean '" + std::string(nearest) + "'?");
  return {};
}

Typed Elaborator::recordOf(const Record &record, const CallExpr &expr) {
  if (expr.arguments.size() != record.members.size())
    return fail(expr.range, "record '" + std::string(record.name) + "' has " + counted(record.members.size(), "field") +
                                ", found " + std::to_string(expr.arguments.size()));
  std::vector<Typed> members;
  for (size_t i = 0; i < record.members.size(); ++i) {
    const Record::Member &member = record.members[i];
    const Typed value = this->expr(*expr.arguments[i]);
    if (!value)
      return {};
    const bool fits = value.isNumber() || value.is(Form::kScalar) || value.is(Form::kFormula);
    if (!fits || (!value.isNumber() && value.value->element != member.element))
      return fail(expr.arguments[i]->range, "field '" + std::string(member.name) + "' is " +
                                                std::string(nameOf(member.element)) + ", this is " + describe(value));
    if (value.isNumber() && !converted(value, member.element, expr.arguments[i]->range))
      return {};
    nameValueOf(value, member.name);
    members.push_back(value);
  }
  return {.kind = Typed::Kind::kRecord, .elements = program.arena.copy(members), .record = &record};
}

Typed Elaborator::inlined(const FunctionItem &function, const CallExpr &expr) {
  const std::string_view name = expr.callee.text;
  if (std::ranges::any_of(calls, [&](const CallExpr *call) { return call->callee.text == name; }))
    return fail(expr.range, "'" + std::string(name) + "' calls itself: functions are inlined");
  if (expr.arguments.size() != function.parameters.size())
    return fail(expr.range, "'" + std::string(name) + "' takes " + counted(function.parameters.size(), "value") +
                                ", found " + std::to_string(expr.arguments.size()));
  std::vector<Typed> arguments;
  for (const Expr *argument : expr.arguments) {
    if (!arguments.emplace_back(this->expr(*argument)))
      return {};
    if (arguments.back().is(Form::kList))
      return fail(argument->range, "a list cannot be passed to a function");
  }
  Scope scope;
  scope.isFunction = true;
  if (!bindAxes(function, expr, arguments, scope))
    return {};
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!(arguments[i] = parameterValue(function, i, arguments[i], expr, scope)))
      return {};
  calls.push_back(&expr);
  scopes.push_back(std::move(scope));
  for (size_t i = 0; i < arguments.size(); ++i)
    bind(function.parameters[i].name, arguments[i], Origin::kParameter);
  const std::span<const Statement *const> list = function.body.statements;
  Typed result;
  if (list.empty() || list.back()->kind != StatementKind::kReturn) {
    error(function.name.range, "'" + std::string(name) + "' returns nothing");
  } else {
    const std::span<const Statement *const> outer = following;
    statements(list.first(list.size() - 1));
    following = outer;
    result = this->expr(*static_cast<const ReturnStatement *>(list.back())->value);
  }
  scopes.pop_back();
  calls.pop_back();
  return result;
}

bool Elaborator::bindAxes(const FunctionItem &function, const CallExpr &expr, std::span<const Typed> arguments,
                          Scope &scope) {
  AxisSet taken = 0;
  const auto take = [&](std::string_view parameter, const Axis *axis) {
    scope.axes.emplace(parameter, axis);
    taken |= axis->bit();
  };
  const auto isParameter = [&](std::string_view text) {
    return std::ranges::any_of(function.axes, [&](const Name &name) { return name.text == text; });
  };
  for (const AxisArgument &given : expr.axes) {
    if (!isParameter(given.parameter.text)) {
      error(given.parameter.range,
            "'" + std::string(function.name.text) + "' has no axis '" + std::string(given.parameter.text) + "'");
      return false;
    }
    const Axis *found = axis(given.axis);
    if (!found)
      return false;
    take(given.parameter.text, found);
  }
  // An axis of the same name, and then, as long as that finds any, the one that is left over in a tile.
  const auto axesOf = [&](size_t i) -> AxisSet {
    const Typed &argument = arguments[i];
    if (argument.kind == Typed::Kind::kStack)
      return argument.axis->bit() | axesOfStack(argument);
    return argument.isArithmetic() && !argument.isNumber() ? argument.value->axes : 0;
  };
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const TypeSyntax *type = function.parameters[i].type)
      for (const Name &name : type->axes)
        if (isParameter(name.text) && !scope.axes.contains(name.text))
          for (const Axis *candidate : program.listOf(axesOf(i)))
            if (candidate->name == name.text)
              take(name.text, candidate);
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const TypeSyntax *type = function.parameters[i].type;
      if (!type)
        continue;
      std::vector<std::string_view> unknown;
      for (const Name &name : type->axes)
        if (isParameter(name.text) && !scope.axes.contains(name.text))
          unknown.push_back(name.text);
      const std::vector<const Axis *> left = program.listOf(axesOf(i) & ~taken);
      if (unknown.size() == 1 && left.size() == 1) {
        take(unknown.front(), left.front());
        found = true;
      }
    }
  }
  for (const Name &name : function.axes) {
    if (scope.axes.contains(name.text))
      continue;
    AxisSet seen = 0;
    for (size_t i = 0; i < arguments.size(); ++i)
      seen |= axesOf(i);
    const std::string text(name.text), called(expr.callee.text);
    Diagnostic &message = error(expr.range, "cannot tell which axis is '" + text + "' of '" + called +
                                                "': the values have " + program.axesText(seen));
    if (const std::vector<const Axis *> left = program.listOf(seen & ~taken); !left.empty())
      message.hint(called + "[" + text + ": " + std::string(left.front()->name) + "](..)");
    return false;
  }
  return true;
}

AxisSet Elaborator::axesOfStack(const Typed &stack) {
  AxisSet axes = stack.axis->bit();
  for (const Typed &element : stack.elements) {
    if (element.kind == Typed::Kind::kStack)
      axes |= axesOfStack(element);
    else if (element.kind == Typed::Kind::kValue)
      axes |= element.value->axes;
  }
  return axes;
}

Typed Elaborator::parameterValue(const FunctionItem &function, size_t number, const Typed &argument,
                                 const CallExpr &expr, Scope &scope) {
  const FunctionItem::Parameter &parameter = function.parameters[number];
  if (!parameter.type)
    return argument;
  const TypeSyntax &type = *parameter.type;
  const SourceRange &range = expr.arguments[number]->range;
  const std::string title = "'" + std::string(parameter.name.text) + "' of '" + std::string(function.name.text) + "'";
  if (const Record *record = type.element.isEmpty() ? nullptr : declarations.record(type.element.text)) {
    if (argument.kind == Typed::Kind::kRecord && argument.record == record)
      return argument;
    return fail(range, title + " is a record " + std::string(record->name) + ", this is " + describe(argument));
  }
  std::optional<Element> element = Element::kF32;
  if (!type.element.isEmpty())
    element = declarations.element(type.element.text);
  if (!element)
    return fail(type.element.range, "unknown element type '" + std::string(type.element.text) + "'",
                hintOfElement(type.element.text));
  AxisSet axes = 0;
  for (const Name &name : type.axes) {
    const auto found = scope.axes.find(name.text);
    const Axis *axis = found == scope.axes.end() ? declarations.axis(name.text) : found->second;
    if (!axis)
      return fail(name.range, "unknown axis '" + std::string(name.text) + "'");
    axes |= axis->bit();
  }
  if (argument.kind == Typed::Kind::kStack && type.hasAxes && axesOfStack(argument) == axes)
    return argument;
  if (argument.isArithmetic() && type.hasAxes) {
    const AxisSet own = argument.isNumber() ? 0 : argument.value->axes;
    if (own == axes && !argument.isNumber() &&
        (argument.value->element == *element || (*element == Element::kF32 && isStorage(argument.value->element))))
      return argument.value->element == *element ? argument : Typed::of(converted(argument, *element, range));
    return fail(range, title + " is " + std::string(nameOf(*element)) + program.axesText(axes) + ", this is " +
                           describe(argument));
  }
  Value *value = scalarOf(argument, *element, range, title);
  return value && argument.isNumber() ? argument : Typed::of(value);
}

Typed Elaborator::endOf(const CallExpr &expr, bool high) {
  if (expr.arguments.size() != 1)
    return fail(expr.range, "'" + std::string(expr.callee.text) + "' takes 1 value, found " +
                                std::to_string(expr.arguments.size()));
  const Typed value = this->expr(*expr.arguments[0]);
  if (!value || value.isNumber() || value.is(Form::kScalar))
    return value;
  const SourceRange &range = expr.arguments[0]->range;
  const std::string title = "'" + std::string(expr.callee.text) + "'";
  if (!value.is(Form::kFormula) || value.value->element != Element::kI32)
    return fail(range, title + " wants an index; this is " + describe(value));
  for (const Axis *axis : program.listOf(value.value->axes))
    if (!directionOf(value.value, axis))
      return fail(range,
                  title + " wants an index that only grows or only falls along '" + std::string(axis->name) + "'");
  Value *end = ends.end(value.value, high, 0);
  return end ? Typed::of(end)
             : fail(range, title + " wants an index whose elements that exist are known from its bound");
}

Typed Elaborator::present(const CallExpr &expr) {
  const Typed value = expr.arguments.size() == 1 ? this->expr(*expr.arguments[0]) : Typed();
  if (!value.is(Form::kFormula) && !value.is(Form::kScalar))
    return value || expr.arguments.size() != 1 ? fail(expr.range, "present wants an index") : Typed();
  Value *result = nullptr;
  for (const Presence &known : value.value->presence) {
    Value *exists = builder.elementwise(Op::kLess, Element::kBool, {known.index, known.bound}, expr.range);
    result = result ? builder.elementwise(Op::kAnd, Element::kBool, {result, exists}, expr.range) : exists;
  }
  if (!result)
    return Typed::of(Constant::ofBool(true));
  // It is true or false everywhere: what does not exist has this value, too.
  return Typed::of(result);
}

Typed Elaborator::stack(const CallExpr &expr) {
  const Axis *along = nullptr;
  if (!overOne(expr, along))
    return {};
  if (!along->isOuter)
    return fail(expr.over.front().range, "'" + std::string(along->name) + "' is no outer axis");
  if (static_cast<int64_t>(expr.arguments.size()) != along->count)
    return fail(expr.range, "'" + std::string(along->name) + "' has " +
                                counted(static_cast<size_t>(along->count), "place") + ", found " +
                                counted(expr.arguments.size(), "value"));
  std::vector<Typed> elements;
  for (const Expr *argument : expr.arguments)
    if (!elements.emplace_back(this->expr(*argument)))
      return {};
  return {.kind = Typed::Kind::kStack, .elements = program.arena.copy(elements), .axis = along};
}

bool Elaborator::overOne(const CallExpr &expr, const Axis *&result) {
  if (expr.over.size() == 1) {
    result = axis(expr.over.front());
    return result != nullptr;
  }
  const std::string callee(expr.callee.text);
  if (expr.over.empty()) {
    error(expr.range, callee + " wants the axis that it goes over").hint(callee + "(..) over axis");
    return false;
  }
  // A maximum of maxima is the maximum of all, and a sum of sums the sum of all.
  const bool isNested = callee == "max" || callee == "sum";
  error(expr.over[1].range, callee + " goes over one axis")
      .hint(isNested ? callee + "(" + callee + "(..) over " + std::string(expr.over[1].text) + ") over " +
                           std::string(expr.over[0].text)
                     : callee + "(..) over axis");
  return false;
}

} // namespace nsa::language
