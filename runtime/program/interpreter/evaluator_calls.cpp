// Functions of the language, and functions that a program declares.
#include "runtime/program/interpreter/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace nsa::interpreter {

using namespace language;

namespace {

constexpr std::pair<std::string_view, Operation> kFunctions[] = {
    {"min", Operation::kMin},   {"max", Operation::kMax},   {"fma", Operation::kFma},
    {"exp2", Operation::kExp2}, {"log2", Operation::kLog2}, {"erf", Operation::kErf},
    {"abs", Operation::kAbs},   {"sqrt", Operation::kSqrt}, {"roundeven", Operation::kRoundEven}};

// Of what exists.
Cell greatest(std::span<const Cell> cells) {
  double value = -kInfinity, high = -kInfinity, low = -kInfinity;
  for (const Cell &cell : cells) {
    value = std::fmax(value, cell.value);
    high = std::fmax(high, cell.value + cell.error);
    low = std::fmax(low, cell.value - cell.error);
  }
  return {value, std::isfinite(value) ? std::max(high - value, value - low) : 0};
}

Cell total(std::span<const Cell> cells) {
  double sum = 0, magnitude = 0, error = 0;
  for (const Cell &cell : cells) {
    sum += cell.value;
    magnitude += std::abs(cell.value);
    error += cell.error;
  }
  return sumOf(sum, magnitude, error, static_cast<int64_t>(cells.size()));
}

} // namespace

TileValue Evaluator::call(const CallExpr &expr) {
  const std::string_view callee = expr.callee.text;
  if (const auto function = functions.find(callee); function != functions.end())
    return inlined(*function->second, expr);
  if (const RecordItem *made = record(callee)) {
    TileValue value;
    value.kind = TileValue::Kind::kRecord;
    value.record = made;
    for (size_t i = 0; i < expr.arguments.size(); ++i)
      value.parts.push_back(converted(this->expr(*expr.arguments[i]), element(made->fields[i].type->element)));
    return value;
  }
  if (callee == "sum" || callee == "last" || (callee == "max" && !expr.over.empty()))
    return reduce(expr);
  if (callee == "iota")
    return TileValue::iota(axis({as<NameExpr>(*expr.arguments[0]).text, expr.range}));
  if (callee == "low" || callee == "high")
    return end(expr, callee == "high");
  if (callee == "dot")
    return dot(expr);
  if (callee == "mask")
    return mask(expr);
  if (callee == "present")
    return present(this->expr(*expr.arguments[0]));
  if (callee == "stack")
    return stack(expr);
  if (callee == "shift")
    return shift(expr);
  std::vector<TileValue> arguments;
  for (const Expr *argument : expr.arguments)
    arguments.push_back(this->expr(*argument));
  if (callee == "ceildiv" || callee == "roundup") {
    const TileValue less =
        elementwise(Operation::kSubtract, std::array{arguments[1], TileValue::of(Element::kInteger, 1.0)}, expr.range);
    const TileValue sum = elementwise(Operation::kAdd, std::array{arguments[0], less}, expr.range);
    const TileValue quotient = elementwise(Operation::kDivide, std::array{sum, arguments[1]}, expr.range);
    return callee == "ceildiv" ? quotient
                               : elementwise(Operation::kMultiply, std::array{quotient, arguments[1]}, expr.range);
  }
  const auto *found = std::ranges::find(kFunctions, callee, &std::pair<std::string_view, Operation>::first);
  if (found == std::end(kFunctions))
    fail(expr.range, "the interpreter has no function " + std::string(callee));
  return elementwise(found->second, arguments, expr.range);
}

TileValue Evaluator::inlined(const FunctionItem &function, const CallExpr &expr) {
  if (expr.arguments.size() != function.parameters.size())
    fail(expr.range, "the function takes another number of values");
  std::vector<TileValue> arguments;
  for (const Expr *argument : expr.arguments)
    arguments.push_back(this->expr(*argument));
  Frame frame;
  bindAxes(function, expr, arguments, frame);
  Scope &scope = frame.scopes.emplace_back();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TypeSyntax *type = function.parameters[i].type;
    TileValue &value = arguments[i];
    if (type && value.isTile() && !value.isConstant() && !record(type->element.text))
      value = converted(value, element(type->element));
    scope.emplace(function.parameters[i].name.text, std::move(value));
  }
  frames.push_back(std::move(frame));
  const std::span<const Statement *const> list = function.body.statements;
  statements(list.first(list.size() - 1));
  TileValue result = this->expr(*as<ReturnStatement>(*list.back()).value);
  frames.pop_back();
  return result;
}

// An axis parameter is what the call says, or else the axis of the same name of a value, or else the one axis that is
// left over.
void Evaluator::bindAxes(const FunctionItem &function, const CallExpr &expr, std::span<const TileValue> arguments,
                         Frame &frame) {
  for (const AxisArgument &given : expr.axes)
    frame.axes.emplace(given.parameter.text, axis(given.axis));
  const auto isOpen = [&](const Name &name) {
    return std::ranges::any_of(function.axes, [&](const Name &each) { return each.text == name.text; }) &&
           !frame.axes.contains(name.text);
  };
  std::vector<AxisSet> own;
  for (const TileValue &argument : arguments) {
    own.push_back(argument.axisSet());
    if (argument.along)
      own.back().insert(argument.along);
    for (const TileValue &part : argument.parts)
      own.back().insert(part.axes.begin(), part.axes.end());
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const TypeSyntax *type = function.parameters[i].type)
      for (const Name &name : type->axes)
        for (const Axis *candidate : own[i])
          if (candidate->name == name.text && isOpen(name))
            frame.axes.emplace(name.text, candidate);
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const TypeSyntax *type = function.parameters[i].type;
      if (!type)
        continue;
      std::vector<std::string_view> open;
      for (const Name &name : type->axes)
        if (isOpen(name))
          open.push_back(name.text);
      AxisSet left = own[i];
      for (const auto &[name, taken] : frame.axes)
        left.erase(taken);
      if (open.size() == 1 && left.size() == 1) {
        frame.axes.emplace(open.front(), *left.begin());
        found = true;
      }
    }
  }
  for (const Name &name : function.axes)
    if (isOpen(name))
      fail(expr.range, "which axis is '" + std::string(name.text) + "'?");
}

TileValue Evaluator::reduce(const CallExpr &expr) {
  const Axis *along = axis(expr.over[0]);
  const TileValue value = this->expr(*expr.arguments[0]);
  if (value.kind != TileValue::Kind::kStack)
    return reduced(value, along, expr);
  if (value.along != along) {
    TileValue result = value;
    for (TileValue &part : result.parts)
      part = reduced(part, along, expr);
    return result;
  }
  if (expr.callee.text == "last")
    return value.parts.back();
  TileValue result = value.parts.front();
  for (size_t i = 1; i < value.parts.size(); ++i)
    result = elementwise(expr.callee.text == "max" ? Operation::kMax : Operation::kAdd,
                         std::array{result, value.parts[i]}, expr.range);
  return result;
}

TileValue Evaluator::reduced(const TileValue &value, const Axis *along, const CallExpr &expr) {
  if (!value.isTile() || !value.hasAxis(along))
    fail(expr.range, "the value does not have the axis");
  if (expr.callee.text == "last") {
    TileValue result = sliced(value, along, along->extent - 1);
    return converted(result, Element::kF32);
  }
  if (!isFloat(value.element)) {
    // Of numbers along an outer axis, which are added one by one.
    TileValue result = sliced(value, along, 0);
    for (int64_t i = 1; i < along->extent; ++i)
      result = elementwise(expr.callee.text == "max" ? Operation::kMax : Operation::kAdd,
                           std::array{result, sliced(value, along, i)}, expr.range);
    return result;
  }
  return folded(value, along, Element::kF32, expr.callee.text == "max" ? greatest : total);
}

TileValue Evaluator::dot(const CallExpr &expr) {
  const Axis *along = axis(expr.over[0]);
  std::array<TileValue, 2> sides = {this->expr(*expr.arguments[0]), this->expr(*expr.arguments[1])};
  for (const TileValue &side : sides)
    if (!side.isTile() || !side.hasAxis(along) || !isFloat(side.element))
      fail(expr.range, "a side does not have the axis");
  // A GPU rounds a computed side to the type of memory that the other side has, and a CPU does not.
  if (isStorage(sides[0].element) != isStorage(sides[1].element)) {
    const size_t wide = isStorage(sides[0].element) ? 1 : 0;
    for (Cell &cell : sides[wide].cells) {
      const Cell rounded = roundedTo(sides[1 - wide].element, cell);
      if (std::isfinite(rounded.value) && !rounded.isUnknown())
        cell.error = std::max(cell.error, std::abs(rounded.value - cell.value) + rounded.error);
    }
  }
  const bool annihilates = sides[0].masked.contains(along) || sides[1].masked.contains(along);
  TileValue result = TileValue::of(Element::kF32, 0.0);
  AxisSet rest;
  for (const TileValue &side : sides) {
    result.inherit(side);
    rest.insert(side.axes.begin(), side.axes.end());
  }
  rest.erase(along);
  const auto known = result.exists.find(along);
  std::vector<TileValue> left, right;
  for (int64_t i = 0; i < along->extent; ++i)
    if (known == result.exists.end() || known->second[static_cast<size_t>(i)]) {
      left.push_back(sliced(sides[0], along, i));
      right.push_back(sliced(sides[1], along, i));
    }
  result.exists.erase(along);
  result.masked.clear();
  result = widened(result, rest);
  std::vector<double> sums(result.cells.size(), 0), magnitudes(sums), errors(sums);
  for (size_t k = 0; k < left.size(); ++k) {
    Walk walk(result.axisSet(), {&left[k], &right[k]});
    for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
      const Cell &a = walk.at(0), &b = walk.at(1);
      const bool isNothing = annihilates && ((a.value == 0 && a.error == 0) || (b.value == 0 && b.error == 0));
      if (isNothing)
        continue;
      sums[i] += a.value * b.value;
      magnitudes[i] += std::abs(a.value * b.value);
      errors[i] += errorOfProduct(a, b);
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    result.cells[i] = sumOf(sums[i], magnitudes[i], errors[i], 2 * static_cast<int64_t>(left.size()));
  return result;
}

TileValue Evaluator::mask(const CallExpr &expr) {
  const TileValue value = this->expr(*expr.arguments[0]);
  const TileValue predicate =
      expr.arguments.size() > 1 ? this->expr(*expr.arguments[1]) : TileValue::of(Element::kTruth, 1.0);
  const double fill = expr.arguments.size() > 2 ? this->expr(*expr.arguments[2]).cells[0].value : -kInfinity;
  AxisSet over;
  for (const Name &name : expr.over)
    over.insert(axis(name));
  const bool isChecked = expr.when && unchosen == 0 && !truth(*expr.when);
  if (value.kind != TileValue::Kind::kStack && predicate.kind != TileValue::Kind::kStack) {
    if (isChecked)
      checkWhen(value, predicate, over, expr);
    return masked(value, predicate, fill, over);
  }
  TileValue result = value.kind == TileValue::Kind::kStack ? value : predicate;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    const auto at = [&](const TileValue &each) {
      return each.kind == TileValue::Kind::kStack ? each.parts[i] : sliced(each, result.along, static_cast<int64_t>(i));
    };
    if (isChecked)
      checkWhen(at(value), at(predicate), over, expr);
    result.parts[i] = masked(at(value), at(predicate), fill, over);
  }
  return result;
}

TileValue Evaluator::masked(const TileValue &value, const TileValue &predicate, double fill, const AxisSet &over) {
  AxisSet axes = value.axisSet();
  axes.insert(predicate.axes.begin(), predicate.axes.end());
  TileValue result;
  result.element = Element::kF32;
  result.inherit(value);
  result.inherit(predicate);
  TileValue known = result; // what exists along the axes of the mask
  for (const auto &[axis, places] : result.exists)
    if (!over.contains(axis))
      known.exists.erase(axis);
    else
      axes.insert(axis);
  Walk walk(axes, {&value, &predicate});
  result.axes = walk.axes();
  for (size_t i = 0; i < walk.size(); ++i, walk.next())
    result.cells.push_back(!walk.exists(known)
                               ? Cell{fill, 0}
                               : interpreter::select(walk.at(1), roundedTo(Element::kF32, walk.at(0)), {fill, 0}));
  for (const Axis *axis : over)
    result.exists.erase(axis);
  if (!predicate.isConstant()) {
    result.masked.insert(predicate.axes.begin(), predicate.axes.end());
    result.masked.insert(over.begin(), over.end());
  }
  return result;
}

void Evaluator::checkWhen(const TileValue &value, const TileValue &predicate, const AxisSet &over,
                          const CallExpr &expr) {
  AxisSet axes = value.axisSet();
  axes.insert(predicate.axes.begin(), predicate.axes.end());
  TileValue along, beside; // what exists along the axes of the mask, and along all others
  for (const TileValue *each : {&value, &predicate})
    for (const auto &[axis, places] : each->exists) {
      (over.contains(axis) ? along : beside).existOnly(axis, places);
      axes.insert(axis);
    }
  Walk walk(axes, {&predicate});
  for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
    const Cell &holds = walk.at(0);
    if (!walk.exists(beside) || (walk.exists(along) && (holds.isTrue() || holds.error != 0)))
      continue;
    Diagnostic *message = fault(Fault::Kind::kBrokenWhen, expr.when->range);
    if (!message)
      continue;
    const std::string place = walk.placeText();
    message->text = "the mask leaves out " + (place.empty() ? "its value" : place + " of its tile") +
                    ", and 'when' does not hold there";
    message->note(walk.exists(along) ? "the predicate fails there, in " + programText(program)
                                     : "nothing exists there, in " + programText(program));
  }
}

TileValue Evaluator::shift(const CallExpr &expr) {
  const Axis *along = axis(expr.over[0]);
  const TileValue value = this->expr(*expr.arguments[0]);
  const TileValue first = converted(this->expr(*expr.arguments[1]), Element::kF32);
  TileValue result = value;
  std::vector<TileValue> before = {first};
  for (int64_t i = 0; i + 1 < along->extent; ++i)
    before.push_back(sliced(value, along, i));
  std::vector<const TileValue *> views;
  for (const TileValue &each : before)
    views.push_back(&each);
  Walk walk(value.axisSet(), views);
  for (size_t i = 0; i < walk.size(); ++i, walk.next())
    result.cells[i] = walk.at(static_cast<size_t>(walk.place(along)));
  return result;
}

TileValue Evaluator::stack(const CallExpr &expr) {
  TileValue result;
  result.kind = TileValue::Kind::kStack;
  result.along = axis(expr.over[0]);
  for (const Expr *argument : expr.arguments)
    result.parts.push_back(this->expr(*argument));
  return result;
}

TileValue Evaluator::end(const CallExpr &expr, bool isHigh) {
  TileValue value = this->expr(*expr.arguments[0]);
  if (!value.isTile())
    fail(expr.range, "is no index");
  if (value.axes.empty())
    return value;
  bool isFound = false;
  double result = 0;
  Walk walk(value.axisSet(), {&value});
  for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
    if (!walk.exists(value))
      continue;
    const double number = walk.at(0).value;
    result = !isFound ? number : isHigh ? std::max(result, number) : std::min(result, number);
    isFound = true;
  }
  if (!isFound && unchosen == 0)
    fail(expr.range, "nothing exists of the index, so that it has no end");
  return TileValue::of(Element::kI32, result);
}

TileValue Evaluator::present(const TileValue &value) {
  TileValue result;
  result.element = Element::kBool;
  Walk walk(value.axisSet(), {&value});
  result.axes = walk.axes();
  for (size_t i = 0; i < walk.size(); ++i, walk.next())
    result.cells.push_back({walk.exists(value) ? 1.0 : 0.0, 0});
  return result;
}

} // namespace nsa::interpreter
