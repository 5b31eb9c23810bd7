#include "compiler/language/types/Elaborator.h"

#include "runtime/base/problem.h"

#include <algorithm>

namespace nsa::language {

Value *Elaborator::tile(const Expr &expr, std::string_view what) {
  const Typed value = this->expr(expr);
  if (!value)
    return nullptr;
  if (value.is(Form::kTile))
    return value.value;
  if (value.is(Form::kFormula))
    return builder.widened(value.value, value.value->axes, Form::kTile);
  if (value.is(Form::kTensor))
    error(expr.range, "'" + std::string(value.value->tensor->name) + "' is memory")
        .hint("write load " + std::string(value.value->tensor->name) + "[..]");
  else
    error(expr.range, std::string(what) + " wants a tile; this is " + describe(value));
  return nullptr;
}

Value *Elaborator::filled(Value *value, const Axis *axis, double neutral, const SourceRange &range) {
  const auto isAlong = [&](const Presence &known) { return known.axis == axis; };
  // What does not come from memory has its number in the padding of a tile, too.
  const std::span<const Presence> presence = std::ranges::any_of(value->presence, isAlong)
                                                 ? value->presence
                                                 : builder.united(value->presence, paddingOf(axis));
  const bool isAbsent = std::ranges::any_of(presence, isAlong);
  if (!isAbsent || (neutral == 0 && (value->zero & axis->bit())))
    return value;
  diagnostics
      ->remark(range, "what does not exist along '" + std::string(axis->name) + "' is filled with " +
                          (neutral == 0 ? "0" : "-inf") + " here")
      .hint("nothing is to be filled where values come from memory, are masked, or are known to be 0");
  Value *fill = builder.make(Op::kFill, Form::kTile, value->element, value->axes, {value}, range);
  fill->number = Constant::ofReal(neutral);
  fill->axis = axis;
  std::vector<Presence> along, rest;
  for (const Presence &known : presence)
    (known.axis == axis ? along : rest).push_back(known);
  // The conditions that it tests are its own presence until what is made of it has none along this axis.
  fill->presence = program.arena.copy(rest);
  Value *exists = nullptr;
  for (const Presence &known : along) {
    Value *one = builder.elementwise(Op::kLess, Element::kBool, {known.index, known.bound}, range);
    exists = exists ? builder.elementwise(Op::kAnd, Element::kBool, {exists, one}, range) : one;
  }
  Value *const operands[] = {value, exists};
  fill->operands = builder.list(operands);
  fill->taints = value->taints;
  fill->zero = neutral == 0 ? value->zero | axis->bit() : 0;
  return fill;
}

namespace {

std::vector<Presence> without(std::span<const Presence> presence, AxisSet axes) {
  std::vector<Presence> rest;
  for (const Presence &known : presence)
    if (!(known.axis->bit() & axes))
      rest.push_back(known);
  return rest;
}

} // namespace

Typed Elaborator::reduce(const CallExpr &expr) {
  const std::string callee(expr.callee.text);
  if (expr.over.empty() && callee == "max")
    return fail(expr.range, "max of one value needs the axis to reduce",
                "max(s) over key; of two values write max(a, b)");
  const Axis *along = nullptr;
  if (expr.arguments.size() != 1)
    return fail(expr.range,
                "'" + callee + "' over an axis takes 1 value, found " + std::to_string(expr.arguments.size()));
  if (!overOne(expr, along))
    return {};
  const Typed argument = this->expr(*expr.arguments[0]);
  if (!argument)
    return {};
  if (along->isOuter) {
    // Values along an outer axis are values of their own.
    Typed stack = argument;
    if (argument.is(Form::kFormula) && (argument.value->axes & along->bit()))
      stack =
          expanded(Op::kAdd, std::array{argument, Typed::of(Constant::ofInteger(0))}, along, expr.range, expr.range);
    if (stack.kind != Typed::Kind::kStack || stack.axis != along)
      return fail(expr.over.front().range,
                  callee + " over '" + std::string(along->name) + "': this is " + describe(argument));
    if (callee == "last")
      return stack.elements.back();
    Typed result = stack.elements.front();
    for (const Typed &element : stack.elements.subspan(1))
      result = elementwise(callee == "max" ? Op::kMax : Op::kAdd, {result, element}, expr.range, expr.callee.range);
    return result;
  }
  if (argument.kind == Typed::Kind::kStack) {
    std::vector<Typed> elements;
    for (const Typed &element : argument.elements) {
      const Typed reduced = reducedTile(element, along, expr);
      if (!elements.emplace_back(reduced))
        return {};
    }
    Typed result = argument;
    result.elements = program.arena.copy(elements);
    return result;
  }
  return reducedTile(argument, along, expr);
}

Typed Elaborator::reducedTile(const Typed &argument, const Axis *along, const CallExpr &expr) {
  const std::string callee(expr.callee.text);
  if (!argument.isArithmetic() || argument.isNumber() || !(argument.value->axes & along->bit())) {
    const AxisSet axes = argument.isArithmetic() && !argument.isNumber() ? argument.value->axes : 0;
    return fail(expr.over.front().range,
                callee + " over '" + std::string(along->name) + "': the value has the axes " + program.axesText(axes));
  }
  Value *value = converted(argument, Element::kF32, expr.arguments[0]->range);
  if (!value)
    return {};
  const std::string_view source = value->name;
  if (callee != "last")
    value = filled(value, along, callee == "max" ? -kInfinity : 0, expr.range);
  Value *result = builder.make(callee == "max"   ? Op::kReduceMax
                               : callee == "sum" ? Op::kReduceSum
                                                 : Op::kLast,
                               Form::kTile, Element::kF32, value->axes & ~along->bit(), {value}, expr.range);
  result->axis = along;
  result->presence = program.arena.copy(without(value->presence, along->bit()));
  if (!source.empty())
    result->name = builder.keepText(std::string(source) + "_" + callee);
  // A sum of masked values is finite or not, as they are; products over other axes still have to annihilate.
  std::vector<Taint> taints;
  for (const Taint &taint : value->taints)
    if (const AxisSet rest = taint.axes & ~along->bit())
      taints.push_back({rest, taint.edge});
  result->taints = program.arena.copy(taints);
  return Typed::of(result);
}

Typed Elaborator::shift(const CallExpr &expr) {
  const Axis *along = nullptr;
  if (expr.arguments.size() != 2)
    return fail(expr.range,
                "shift(x, first) over an axis takes 2 values, found " + std::to_string(expr.arguments.size()));
  if (!overOne(expr, along))
    return {};
  Value *value = tile(*expr.arguments[0], "shift");
  const Typed first = this->expr(*expr.arguments[1]);
  if (!value || !first)
    return {};
  if (!(value->axes & along->bit()) || value->element != Element::kF32)
    return fail(expr.arguments[0]->range,
                "shift over '" + std::string(along->name) + "' of " + program.typeText(*value));
  Value *begin = fitted(first, Element::kF32, value->axes & ~along->bit(), Form::kTile, expr.arguments[1]->range);
  if (!begin)
    return {};
  Value *result = builder.make(Op::kShift, Form::kTile, Element::kF32, value->axes, {value, begin}, expr.range);
  result->axis = along;
  result->presence = value->presence;
  return Typed::of(result);
}

// A computed side of a product, in the type that the product takes.
Value *Elaborator::rounded(Value *side) {
  // What a branch hands on to the product only is rounded in the branch. Where it is a value of memory, nothing is left
  // to do there, and the product can take it as it lies.
  Value *statement = side->op == Op::kResult && side->name.empty() ? side->operands[0] : nullptr;
  if (statement && statement->op == Op::kIf && statement->branch->results.size() == 1) {
    Branch &branch = *statement->branch;
    const auto round = [&](Body *body, Value *yielded) {
      ValueBuilder::Inside inside(builder, body);
      if (yielded->op == Op::kCast && isStorage(yielded->operands[0]->element))
        yielded = yielded->operands[0];
      Value *cast = builder.elementwise(Op::kCast, Element::kProduct, {yielded}, yielded->range);
      return builder.list(std::span<Value *const>(&cast, 1));
    };
    branch.thenYielded = round(branch.then, branch.thenYielded[0]);
    branch.otherwiseYielded = round(branch.otherwise, branch.otherwiseYielded[0]);
    side->element = Element::kProduct;
    return side;
  }
  // Products of one tile share what it is rounded to.
  for (Value *known : builder.block()->values)
    if (known->op == Op::kCast && known->element == Element::kProduct && known->operands[0] == side)
      return known;
  Value *result = builder.elementwise(Op::kCast, Element::kProduct, {side}, side->range);
  if (!side->name.empty())
    result->name = builder.keepText(std::string(side->name) + "_rounded");
  return result;
}

Typed Elaborator::dot(const CallExpr &expr, const Expr *accumulator) {
  const Axis *along = nullptr;
  if (expr.arguments.size() != 2)
    return fail(expr.range, "dot takes 2 values, found " + std::to_string(expr.arguments.size()));
  const Typed initial = accumulator ? this->expr(*accumulator) : Typed();
  if ((accumulator && !initial) || !overOne(expr, along))
    return {};
  Value *sides[2];
  for (size_t i = 0; i < 2; ++i)
    if (!(sides[i] = tile(*expr.arguments[i], "dot")))
      return {};
  const std::string title = "dot over '" + std::string(along->name) + "': ";
  for (size_t i = 0; i < 2; ++i)
    if (!(sides[i]->axes & along->bit()))
      return fail(expr.arguments[i]->range, title + "the " + (i ? "right" : "left") + " side has no axis '" +
                                                std::string(along->name) + "'; it has " +
                                                program.axesText(sides[i]->axes));
  if (const AxisSet common = sides[0]->axes & sides[1]->axes & ~along->bit()) {
    error(expr.range, title + "both sides have '" + std::string(program.listOf(common).front()->name) + "'")
        .note(expr.arguments[0]->range,
              "left " + program.axesText(sides[0]->axes) + ", right " + program.axesText(sides[1]->axes))
        .hint("a product sums over one axis and has the rest of both; for a value per row write sum(x * y) over " +
              std::string(along->name));
    return {};
  }
  for (size_t i = 0; i < 2; ++i) {
    const Element element = sides[i]->element;
    if (!isFloat(element) || element == Element::kF64)
      return fail(expr.arguments[i]->range, "a product is of f32 or io; this is " + program.typeText(*sides[i]));
    sides[i] = filled(sides[i], along, 0, expr.range);
  }
  const AxisSet axes = (sides[0]->axes | sides[1]->axes) & ~along->bit();
  Value *begin = nullptr;
  if (accumulator) {
    begin = fitted(initial, Element::kF32, axes, Form::kTile, accumulator->range);
    if (!begin)
      return {};
  }
  // An element that a mask left out must not let NaN and Inf of the other side pass.
  Value *edge = nullptr;
  for (const Taint &taint : sides[0]->taints)
    if (taint.axes & along->bit())
      edge = edge ? builder.elementwise(Op::kOr, Element::kBool, {edge, taint.edge}, expr.range) : taint.edge;
  Value *rightEdge = nullptr;
  for (const Taint &taint : sides[1]->taints)
    if (taint.axes & along->bit())
      rightEdge =
          rightEdge ? builder.elementwise(Op::kOr, Element::kBool, {rightEdge, taint.edge}, expr.range) : taint.edge;
  if (!edge && rightEdge) {
    std::swap(sides[0], sides[1]);
    edge = rightEdge;
  }
  Value *result = builder.make(Op::kDot, Form::kTile, Element::kF32, axes, {}, expr.range);
  std::erase(builder.block()->values, result);
  // The smaller type of a product's sides is that of memory: what was computed is rounded where the product needs it.
  if (isStorage(sides[0]->element) != isStorage(sides[1]->element))
    for (Value *&side : sides)
      if (!isStorage(side->element))
        side = rounded(side);
  builder.block()->values.push_back(result);
  Value *const operands[] = {sides[0], sides[1], begin, edge};
  result->operands = builder.list(operands);
  result->axis = along;
  for (const Value *side : sides)
    result->presence = builder.united(result->presence, program.arena.copy(without(side->presence, along->bit())));
  result->zero = (sides[0]->zero | sides[1]->zero) & ~along->bit();
  if (begin) {
    result->presence = builder.united(result->presence, begin->presence);
    result->zero &= begin->zero;
  }
  return Typed::of(result);
}

Typed Elaborator::mask(const CallExpr &expr) {
  if (expr.arguments.empty() || expr.arguments.size() > 3)
    return fail(expr.range, "mask takes a value, a predicate and a fill, found " +
                                std::to_string(expr.arguments.size()) + " values");
  const Typed value = this->expr(*expr.arguments[0]);
  const Typed predicate =
      expr.arguments.size() > 1 ? this->expr(*expr.arguments[1]) : Typed::of(Constant::ofBool(true));
  const Typed fill =
      expr.arguments.size() > 2 ? this->expr(*expr.arguments[2]) : Typed::of(Constant::ofReal(-kInfinity));
  if (!value || !predicate || !fill)
    return {};
  bool isKnown = !expr.over.empty();
  if (!isKnown)
    return fail(expr.range, "mask wants the axes along which its result ends", "mask(x, p) over key");
  const AxisSet over = axisSet(expr.over, isKnown);
  Value *when = expr.when ? scalar(*expr.when, Element::kBool, "where a mask may fail",
                                   "compare ends of indices, such as high(at) > low(index)")
                          : nullptr;
  if (!isKnown || (expr.when && !when))
    return {};
  if (!fill.isNumber())
    return fail(expr.arguments[2]->range, "the fill of a mask is a number; this is " + describe(fill));
  if (const Axis *outer = outerAxisOf(std::array{value, predicate})) {
    std::vector<Typed> elements;
    for (int64_t i = 0; i < outer->count; ++i)
      if (!elements.emplace_back(
              masked(component(value, outer, i), component(predicate, outer, i), fill, over, when, expr)))
        return {};
    return {.kind = Typed::Kind::kStack, .elements = program.arena.copy(elements), .axis = outer};
  }
  return masked(value, predicate, fill, over, when, expr);
}

Typed Elaborator::masked(const Typed &typed, const Typed &typedPredicate, const Typed &fill, AxisSet over, Value *when,
                         const CallExpr &expr) {
  Value *value = converted(typed, Element::kF32, expr.arguments[0]->range);
  if (!value)
    return {};
  Value *predicate = nullptr;
  if (!typedPredicate.isNumber() || !typedPredicate.number.isTrue()) {
    predicate =
        converted(typedPredicate, Element::kBool, expr.arguments.size() > 1 ? expr.arguments[1]->range : expr.range);
    if (!predicate)
      return {};
  }
  const AxisSet predicateAxes = predicate ? predicate->axes : 0;
  const AxisSet axes = value->axes | predicateAxes;
  // Where the predicate can fail, and where what is left out along `over` can.
  Value *edge = nullptr, *predicateEdge = nullptr;
  const auto join = [&](Value *left, Value *right) {
    return left && left != right ? builder.elementwise(Op::kOr, Element::kBool, {left, right}, expr.range) : right;
  };
  const std::vector<Value *> conjuncts = predicate ? conjunctsOf(predicate) : std::vector<Value *>();
  const Value *unknown = nullptr;
  for (const KnownEdge &known : knownEdges)
    if (predicate && known.predicate == predicate && known.over == over && !when)
      predicateEdge = known.edge;
  if (when && predicate)
    predicateEdge = when;
  else if (predicate && !predicateEdge) {
    for (Value *conjunct : conjuncts) {
      const Edge part = edges.canFail(conjunct, over);
      predicateEdge = join(predicateEdge, part.condition);
      if (part.unknown)
        unknown = part.unknown;
    }
    knownEdges.push_back({predicate, over, predicateEdge});
  }
  if (unknown)
    diagnostics->warning(unknown->range, "every tile is an edge: the ends of this part of the mask are not known")
        .hint("without 'when' the result is right, only slower; .. over " + std::string(expr.over.front().text) +
              " when CONDITION says where it may fail");
  edge = predicateEdge;
  std::span<const Presence> presence =
      predicate ? builder.united(value->presence, predicate->presence) : value->presence;
  Value *exists = predicate;
  for (const Presence &known : presence) {
    if (!(known.axis->bit() & over))
      continue;
    if (std::ranges::any_of(conjuncts, [&](const Value *conjunct) { return ends.implies(conjunct, known); }))
      continue;
    const Edge part = edges.canFail(known, over);
    edge = join(edge, when ? when : part.condition);
    Value *one = builder.elementwise(Op::kLess, Element::kBool, {known.index, known.bound}, expr.range);
    exists = exists ? builder.elementwise(Op::kAnd, Element::kBool, {exists, one}, expr.range) : one;
  }
  if (!exists)
    return Typed::of(value->isTile() ? value : builder.widened(value, axes, Form::kTile));
  if (!isConstant(edge) && edge->name.empty())
    edge->name = "is_edge";
  Value *wide = builder.widened(value, axes | exists->axes, Form::kTile);
  Value *result =
      builder.make(Op::kMask, Form::kTile, Element::kF32, axes | exists->axes, {wide, exists, edge}, expr.range);
  result->number = Constant::ofReal(fill.number.real);
  result->presence = program.arena.copy(without(presence, over));
  result->zero = fill.number.real == 0 ? value->zero | over : value->zero & ~over;
  result->taints = value->taints;
  if (predicate && predicateEdge)
    result->taints =
        builder.united(result->taints, program.arena.copy(std::vector{Taint{over | predicateAxes, predicateEdge}}));
  return Typed::of(result);
}

Typed Elaborator::top(const CallExpr &expr) {
  const Axis *along = nullptr;
  if (expr.arguments.size() != 1)
    return fail(expr.range, "top(n) over an axis has one number, found " + std::to_string(expr.arguments.size()));
  if (!overOne(expr, along))
    return {};
  if (boundAtTopLevel != &expr)
    return fail(expr.range, "a list is bound by a let at the top level of the kernel",
                "let best = top(n) over " + std::string(along->name) + ", outside of blocks and functions");
  const std::optional<int64_t> slots = declarations.integer(expr.arguments[0]);
  if (!slots)
    return {};
  constexpr int64_t kMostSlots = Spec::kMostSelCount;
  if (*slots < 1 || *slots > kMostSlots)
    return fail(expr.arguments[0]->range,
                "a list has 1 to " + std::to_string(kMostSlots) + " slots, this is " + std::to_string(*slots));
  Value *list = builder.make(Op::kTop, Form::kList, Element::kI32, along->bit(), {}, expr.range);
  list->axis = along;
  list->index = *slots;
  return Typed::of(list);
}

Typed Elaborator::next(const CallExpr &expr) {
  if (expr.arguments.size() != 2)
    return fail(expr.range, "next(list, previous) takes 2 values, found " + std::to_string(expr.arguments.size()));
  const Typed list = this->expr(*expr.arguments[0]), previous = this->expr(*expr.arguments[1]);
  if (!list || !previous)
    return {};
  if (!list.is(Form::kList))
    return fail(expr.arguments[0]->range, "next wants a list; this is " + describe(list));
  Value *after = fitted(previous, Element::kI32, list.value->axes, Form::kTile, expr.arguments[1]->range);
  if (!after)
    return {};
  return Typed::of(
      builder.make(Op::kNext, Form::kTile, Element::kI32, list.value->axes, {list.value, after}, expr.range));
}

} // namespace nsa::language
