#include "compiler/language/types/Elaborator.h"

#include <algorithm>
#include <array>

namespace nsa::language {

namespace {

Op opOf(BinaryOp op) {
  static constexpr std::array kOps = {Op::kAdd,          Op::kSubtract, Op::kMultiply, Op::kDivide,    Op::kRemainder,
                                      Op::kEqual,        Op::kUnequal,  Op::kLess,     Op::kLessEqual, Op::kGreater,
                                      Op::kGreaterEqual, Op::kAnd,      Op::kOr};
  return kOps[static_cast<size_t>(op)];
}

bool isDot(const Expr *expr) {
  const auto *call = asIf<CallExpr>(expr);
  return call && call->callee.text == "dot";
}

} // namespace

// Whether a number that is known here is all that the expression can be.
bool Elaborator::isNumber(const Expr &expr) {
  switch (expr.kind) {
  case ExprKind::kNumber:
    return true;
  case ExprKind::kName: {
    const std::string_view name = as<NameExpr>(expr).text;
    const Binding *binding = find(name);
    if (binding)
      return binding->value.isNumber();
    return !declarations.scalar(name) && !declarations.tensor(name) && declarations.constant(name).has_value();
  }
  case ExprKind::kUnary:
    return isNumber(*as<UnaryExpr>(expr).operand);
  case ExprKind::kBinary:
    return isNumber(*as<BinaryExpr>(expr).left) && isNumber(*as<BinaryExpr>(expr).right);
  default:
    return false;
  }
}

bool Elaborator::isAnyLazy(ExprList list) {
  return std::ranges::any_of(list, [this](const Expr *expr) { return isLazy(*expr); });
}

bool Elaborator::isLazy(const Expr &expr) {
  switch (expr.kind) {
  case ExprKind::kLoad:
    return true;
  case ExprKind::kCall: {
    const auto &call = as<CallExpr>(expr);
    return !call.over.empty() || call.callee.text == "dot" || !isBuiltInFunction(call.callee.text) ||
           isAnyLazy(call.arguments);
  }
  case ExprKind::kTuple:
    return isAnyLazy(as<TupleExpr>(expr).elements);
  case ExprKind::kUnary:
    return isLazy(*as<UnaryExpr>(expr).operand);
  case ExprKind::kBinary: {
    const auto &binary = as<BinaryExpr>(expr);
    // A division by what is no constant takes tens of instructions on a GPU, and one slow one of a CPU.
    const bool divides = binary.op == BinaryOp::kDivide || binary.op == BinaryOp::kRemainder;
    return (divides && !isNumber(*binary.right)) || isLazy(*binary.left) || isLazy(*binary.right);
  }
  case ExprKind::kIn:
    return isLazy(*as<InExpr>(expr).value);
  case ExprKind::kBelow:
    return isLazy(*as<BelowExpr>(expr).index);
  case ExprKind::kConditional: {
    const auto &choice = as<ConditionalExpr>(expr);
    return isLazy(*choice.condition) || isLazy(*choice.ifTrue) || isLazy(*choice.ifFalse);
  }
  case ExprKind::kCast:
    return isLazy(*as<CastExpr>(expr).value);
  case ExprKind::kField:
    return isLazy(*as<FieldExpr>(expr).base);
  case ExprKind::kPick:
    return isLazy(*as<PickExpr>(expr).base);
  case ExprKind::kNumber:
  case ExprKind::kBool:
  case ExprKind::kName:
    return false;
  }
  return false;
}

Typed Elaborator::expr(const Expr &expr) {
  if (!mayGoOn(expr.range))
    return {};
  const Typed value = typed(expr);
  if (value.is(Form::kFormula) && value.value->size > kMostFormulaSize)
    return fail(expr.range,
                "a formula has at most " + std::to_string(kMostFormulaSize) + " operations, with those of its parts",
                "it is computed wherever it is used: make a tile of it with 'var x: i32[..] = ..'");
  return value;
}

Typed Elaborator::typed(const Expr &expr) {
  // A let gives its name to what it binds as a whole.
  if (expr.kind != ExprKind::kLoad)
    pendingName = {};
  switch (expr.kind) {
  case ExprKind::kNumber: {
    const auto &number = as<NumberExpr>(expr);
    return Typed::of(number.isInteger ? Constant::ofInteger(number.integer) : Constant::ofReal(number.real));
  }
  case ExprKind::kBool:
    return Typed::of(Constant::ofBool(as<BoolExpr>(expr).value));
  case ExprKind::kName:
    return nameValue(as<NameExpr>(expr));
  case ExprKind::kTuple: {
    std::vector<Typed> elements;
    for (const Expr *element : as<TupleExpr>(expr).elements)
      if (!elements.emplace_back(this->expr(*element)))
        return {};
    return {.kind = Typed::Kind::kTuple, .elements = program.arena.copy(elements)};
  }
  case ExprKind::kUnary:
    return unary(as<UnaryExpr>(expr));
  case ExprKind::kBinary:
    return binary(as<BinaryExpr>(expr));
  case ExprKind::kIn:
    return in(as<InExpr>(expr));
  case ExprKind::kBelow:
    return below(as<BelowExpr>(expr));
  case ExprKind::kConditional:
    return conditional(as<ConditionalExpr>(expr));
  case ExprKind::kCast:
    return cast(as<CastExpr>(expr));
  case ExprKind::kField:
    return field(as<FieldExpr>(expr));
  case ExprKind::kPick:
    return pick(as<PickExpr>(expr));
  case ExprKind::kLoad:
    return load(as<LoadExpr>(expr));
  case ExprKind::kCall:
    return call(as<CallExpr>(expr));
  }
  return {};
}

Typed Elaborator::unary(const UnaryExpr &expr) {
  const Typed operand = this->expr(*expr.operand);
  return operand
             ? elementwise(expr.op == UnaryOp::kNegate ? Op::kNegate : Op::kNot, {operand}, expr.range, expr.opRange)
             : Typed();
}

Typed Elaborator::binary(const BinaryExpr &expr) {
  if (expr.op == BinaryOp::kAnd || expr.op == BinaryOp::kOr)
    return logical(expr);
  // A sum with a product begins with the other side.
  if (expr.op == BinaryOp::kAdd && isDot(expr.right))
    return dot(as<CallExpr>(*expr.right), expr.left);
  if (expr.op == BinaryOp::kAdd && isDot(expr.left))
    return dot(as<CallExpr>(*expr.left), expr.right);
  const Typed left = this->expr(*expr.left), right = this->expr(*expr.right);
  return left && right ? elementwise(opOf(expr.op), {left, right}, expr.range, expr.opRange) : Typed();
}

Typed Elaborator::logical(const BinaryExpr &expr) {
  const Typed left = this->expr(*expr.left);
  if (!left)
    return {};
  const bool isAnd = expr.op == BinaryOp::kAnd;
  if (left.isNumber()) {
    if (left.number.isTrue() == isAnd)
      return this->expr(*expr.right);
    typedOnly([&] { this->expr(*expr.right); });
    return Typed::of(Constant::ofBool(!isAnd));
  }
  const Typed right = this->expr(*expr.right);
  if (!right)
    return {};
  if (right.isNumber())
    return right.number.isTrue() == isAnd ? left : Typed::of(Constant::ofBool(!isAnd));
  return elementwise(isAnd ? Op::kAnd : Op::kOr, {left, right}, expr.range, expr.opRange);
}

Typed Elaborator::in(const InExpr &expr) {
  const Typed value = this->expr(*expr.value), low = this->expr(*expr.low), high = this->expr(*expr.high);
  if (!value || !low || !high)
    return {};
  // From 0 to what is not negative, one unsigned comparison tells both.
  const auto isInteger = [](const Typed &side) {
    return side.isNumber() && side.number.kind == Constant::Kind::kInteger;
  };
  const bool fromZero = isInteger(low) && low.number.integer == 0 && isInteger(high) && high.number.integer >= 0;
  if (fromZero && value.kind == Typed::Kind::kValue && value.value->element == Element::kI32) {
    Value *bound = converted(high, Element::kI32, expr.high->range);
    return bound ? Typed::of(builder.elementwise(Op::kInRange, Element::kBool, {value.value, bound}, expr.range))
                 : Typed();
  }
  const Typed begun = elementwise(Op::kGreaterEqual, {value, low}, expr.range, expr.opRange);
  const Typed isBelow = elementwise(Op::kLess, {value, high}, expr.range, expr.opRange);
  return begun && isBelow ? elementwise(Op::kAnd, {begun, isBelow}, expr.range, expr.opRange) : Typed();
}

Value *Elaborator::bounded(Value *index, const Axis *axis, Value *bound, const SourceRange &range) {
  Value *result = builder.make(Op::kBelow, Form::kFormula, Element::kI32, index->axes, {index, bound}, range);
  const Presence own{axis, index, bound};
  result->presence = builder.united(index->presence, program.arena.copy(std::vector{own}));
  return result;
}

Typed Elaborator::below(const BelowExpr &expr) {
  const Typed index = this->expr(*expr.index);
  Value *bound = scalar(*expr.bound, Element::kI32, "a bound");
  if (!index || !bound)
    return {};
  const std::vector<const Axis *> axes =
      index.is(Form::kFormula) ? program.listOf(index.value->axes) : std::vector<const Axis *>();
  if (axes.size() != 1 || index.value->element != Element::kI32)
    return fail(expr.index->range, "'below' bounds an index of one axis; this is " + describe(index));
  return Typed::of(bounded(index.value, axes.front(), bound, expr.range));
}

Typed Elaborator::conditional(const ConditionalExpr &expr) {
  const Typed condition = this->expr(*expr.condition);
  if (!condition)
    return {};
  if (condition.isNumber()) {
    // The type is that of both sides, but only one of them is part of the program.
    const bool holds = condition.number.isTrue();
    Typed dead;
    typedOnly([&] { dead = this->expr(holds ? *expr.ifFalse : *expr.ifTrue); });
    Typed chosen = this->expr(holds ? *expr.ifTrue : *expr.ifFalse);
    if (!chosen || !dead || !chosen.isArithmetic() || dead.kind != Typed::Kind::kValue || !dead.isArithmetic())
      return chosen;
    if (!dead.value->axes)
      return chosen;
    Value *value =
        converted(chosen, elementOf(chosen) == Element::kNone ? dead.value->element : elementOf(chosen), expr.range);
    if (!value)
      return {};
    const bool isTile = value->isTile() || dead.value->isTile();
    Value *wide = builder.widened(value, dead.value->axes, isTile ? Form::kTile : Form::kFormula);
    if (wide != value && !isTile) {
      wide->presence = builder.united(wide->presence, builder.leaving(dead.value->presence, builder.block()->depth));
      wide->depth = std::max(wide->depth, value->depth);
    }
    return Typed::of(wide);
  }
  if (condition.is(Form::kScalar) && condition.value->element == Element::kBool &&
      (isLazy(*expr.ifTrue) || isLazy(*expr.ifFalse)))
    return lazyConditional(expr, condition.value);
  const Typed ifTrue = this->expr(*expr.ifTrue), ifFalse = this->expr(*expr.ifFalse);
  return ifTrue && ifFalse ? select(condition, ifTrue, ifFalse, expr.range, expr.opRange) : Typed();
}

namespace {

// The values that a side of a branch hands on: itself, or what it is put together of.
std::span<const Typed> partsOf(const Typed &typed) {
  const bool isWhole = typed.kind != Typed::Kind::kTuple && typed.kind != Typed::Kind::kRecord;
  return isWhole ? std::span<const Typed>(&typed, 1) : typed.elements;
}

} // namespace

// What both sides of a branch can be. Nothing where they do not go together.
std::optional<Elaborator::SideType> Elaborator::sideType(const Typed &left, const Typed &right) const {
  if (!left.isArithmetic() || !right.isArithmetic())
    return std::nullopt;
  SideType type;
  Element first = elementOf(left), second = elementOf(right);
  if (first == Element::kNone)
    std::swap(first, second);
  if (first == Element::kNone) {
    const bool isBool = left.number.kind == Constant::Kind::kBool && right.number.kind == Constant::Kind::kBool;
    const bool isReal = left.number.kind == Constant::Kind::kReal || right.number.kind == Constant::Kind::kReal;
    type.element = isBool ? Element::kBool : isReal ? Element::kF32 : Element::kI32;
  } else {
    type.element = isStorage(first) && second != first ? Element::kF32 : first;
  }
  for (const Typed &side : {left, right})
    if (side.kind == Typed::Kind::kValue) {
      type.axes |= side.value->axes;
      if (side.value->form != Form::kScalar)
        type.form = Form::kTile;
    }
  return type;
}

// A branch: only the chosen side is computed.
Typed Elaborator::lazyConditional(const ConditionalExpr &expr, Value *condition) {
  const Expr *exprs[] = {expr.ifTrue, expr.ifFalse};
  // Both sides are typed before they are made, because a branch hands on values of one type.
  Typed sides[2];
  for (size_t i = 0; i < 2; ++i) {
    Attempt trial(*this, false);
    Body *scratch = builder.newBody();
    ValueBuilder::Inside inside(builder, scratch);
    knowPresent(condition, i == 0);
    if (!(sides[i] = this->expr(*exprs[i])))
      return {};
    trial.discard();
  }
  const std::span<const Typed> left = partsOf(sides[0]), right = partsOf(sides[1]);
  std::vector<SideType> types;
  for (size_t i = 0; i < left.size() && left.size() == right.size(); ++i)
    if (const std::optional<SideType> type = sideType(left[i], right[i]))
      types.push_back(*type);
  if (sides[0].record != sides[1].record || types.size() != left.size()) {
    // Typed once more, now with its messages.
    const Typed ifTrue = this->expr(*expr.ifTrue), ifFalse = this->expr(*expr.ifFalse);
    return ifTrue && ifFalse ? select(Typed::of(condition), ifTrue, ifFalse, expr.range, expr.opRange) : Typed();
  }
  auto *branch = program.arena.make<Branch>();
  std::vector<Value *> yielded[2];
  for (size_t i = 0; i < 2; ++i) {
    Body *body = builder.newBody();
    (i == 0 ? branch->then : branch->otherwise) = body;
    Attempt trial(*this, true);
    ValueBuilder::Inside inside(builder, body);
    knowPresent(condition, i == 0);
    const Typed value = this->expr(*exprs[i]);
    const std::span<const Typed> parts = partsOf(value);
    for (size_t part = 0; part < types.size(); ++part) {
      const SideType &type = types[part];
      Value *fit = value ? fitted(parts[part], type.element, type.axes, type.form, exprs[i]->range) : nullptr;
      if (!fit)
        return {};
      yielded[i].push_back(fit);
    }
  }
  branch->thenYielded = builder.list(yielded[0]);
  branch->otherwiseYielded = builder.list(yielded[1]);
  Value *statement = builder.make(Op::kIf, Form::kStatement, Element::kNone, 0, {condition}, expr.range);
  statement->branch = branch;
  std::vector<Typed> results;
  std::vector<Value *> values;
  for (size_t i = 0; i < types.size(); ++i) {
    Value *result = resultOf(statement, yielded[0][i], yielded[1][i], i);
    if (sides[0].record)
      result->name = sides[0].record->members[i].name;
    results.push_back(Typed::of(result));
    values.push_back(result);
  }
  branch->results = builder.list(values);
  const bool isWhole = sides[0].kind != Typed::Kind::kTuple && sides[0].kind != Typed::Kind::kRecord;
  if (isWhole)
    return results.front();
  Typed result = sides[0];
  result.elements = program.arena.copy(results);
  return result;
}

Typed Elaborator::cast(const CastExpr &expr) {
  const Typed value = this->expr(*expr.value);
  const std::optional<Element> element = declarations.element(expr.element.text);
  if (!element)
    return fail(expr.element.range, "unknown element type '" + std::string(expr.element.text) + "'",
                hintOfElement(expr.element.text));
  return value ? castTo(value, *element, expr.range) : Typed();
}

Typed Elaborator::castTo(const Typed &value, Element element, const SourceRange &range) {
  if (value.kind == Typed::Kind::kStack) {
    std::vector<Typed> elements;
    for (const Typed &each : value.elements)
      if (!elements.emplace_back(castTo(each, element, range)))
        return {};
    Typed result = value;
    result.elements = program.arena.copy(elements);
    return result;
  }
  if (value.isNumber() && value.number.kind != Constant::Kind::kWord)
    return Typed::of(numberOf(value.number, element, range));
  if (!value.isArithmetic() || value.isNumber() || value.value->element == Element::kBool)
    return fail(range, describe(value) + " cannot be cast to " + std::string(nameOf(element)));
  if (value.value->element == element)
    return value;
  return Typed::of(builder.elementwise(Op::kCast, element, {value.value}, range));
}

Typed Elaborator::field(const FieldExpr &expr) {
  const std::string_view member = expr.field.text;
  if (const auto *base = asIf<NameExpr>(expr.base); base && !find(base->text)) {
    if (member == "max" && base->text == "i32")
      return Typed::of(
          builder.constant(Constant::ofInteger(std::numeric_limits<int32_t>::max()), Element::kI32, expr.range));
    if (member == "max" && base->text == "f32")
      return Typed::of(builder.constant(Constant::ofReal(static_cast<double>(std::numeric_limits<float>::max())),
                                        Element::kF32, expr.range));
    if (const Record *record = declarations.record(base->text); record && member == "zero")
      return {.kind = Typed::Kind::kRecord,
              .elements =
                  program.arena.copy(std::vector<Typed>(record->members.size(), Typed::of(Constant::ofInteger(0)))),
              .record = record};
  }
  const Typed base = this->expr(*expr.base);
  if (!base)
    return {};
  if (base.is(Form::kTensor)) {
    if (member != "present")
      return fail(expr.field.range, "a tensor has no '" + std::string(member) + "'");
    if (!base.value->tensor->isOptional && base.value->op == Op::kTensor && !base.value->tensor->record)
      return Typed::of(Constant::ofBool(true));
    return Typed::of(builder.make(Op::kPresent, Form::kScalar, Element::kBool, 0, {base.value}, expr.range));
  }
  if (base.kind != Typed::Kind::kRecord)
    return fail(expr.field.range, describe(base) + " has no '" + std::string(member) + "'");
  for (size_t i = 0; i < base.elements.size(); ++i)
    if (base.record->members[i].name == member)
      return base.elements[i];
  return fail(expr.field.range,
              "record '" + std::string(base.record->name) + "' has no field '" + std::string(member) + "'");
}

Typed Elaborator::pick(const PickExpr &expr) {
  const Typed base = this->expr(*expr.base);
  const Axis *along = axis(expr.axis);
  const Typed index = this->expr(*expr.index);
  return base && along && index ? picked(base, along, index, expr.range) : Typed();
}

Typed Elaborator::picked(const Typed &base, const Axis *along, const Typed &index, const SourceRange &range) {
  const bool hasAxis = base.kind == Typed::Kind::kStack ? base.axis == along
                                                        : base.kind == Typed::Kind::kValue && base.isArithmetic() &&
                                                              (base.value->axes & along->bit());
  if (!hasAxis)
    return fail(range, describe(base) + " has no axis '" + std::string(along->name) + "'");
  if (!along->isOuter)
    return fail(range, "'" + std::string(along->name) + "' is no outer axis, and elements along it cannot be picked");
  if (index.isNumber() && (index.number.integer < 0 || index.number.integer >= along->count))
    return fail(range, "'" + std::string(along->name) + "' has no place " + toString(index.number) + ", but 0 to " +
                           std::to_string(along->count - 1));
  Value *place = scalarOf(index, Element::kI32, range, "a place");
  if (!place)
    return {};
  if (base.is(Form::kFormula))
    return Typed::of(builder.substituted(base.value, along, place));
  if (base.kind == Typed::Kind::kValue)
    return Typed::of(pickedLoad(base.value, along, place, range));
  if (index.isNumber())
    return base.elements[static_cast<size_t>(index.number.integer)];
  const bool isOfTensors = base.elements.front().is(Form::kTensor);
  for (const KnownPick &known : picks)
    if (isOfTensors && known.stack == base.elements.data() && known.index == place)
      return known.picked;
  // The comparisons stand in the order of the places: ptxas takes fewer instructions where the outer choice's is first.
  std::vector<Typed> conditions;
  for (size_t i = 0; i + 1 < base.elements.size(); ++i)
    conditions.push_back(Typed::of(isAt(place, static_cast<int64_t>(i), range)));
  Typed result = base.elements.back();
  for (size_t i = conditions.size(); result && i-- > 0;)
    result = select(conditions[i], base.elements[i], result, range, range);
  if (isOfTensors && result)
    picks.push_back({base.elements.data(), place, result});
  return result;
}

// A load whose rows are stacked along an outer axis: a product reads those of one place.
Value *Elaborator::pickedLoad(Value *load, const Axis *along, Value *place, const SourceRange &range) {
  Value *result = builder.make(Op::kPick, Form::kTile, load->element, load->axes & ~along->bit(), {load, place}, range);
  std::vector<Presence> presence;
  for (const Presence &known : load->presence)
    if (!(known.index->axes & along->bit()))
      presence.push_back(known);
  result->presence = program.arena.copy(presence);
  result->zero = load->zero;
  return result;
}

// Whether an index along an outer axis is this one.
Value *Elaborator::isAt(Value *index, int64_t place, const SourceRange &range) {
  for (const KnownPlace &known : places)
    if (known.index == index && known.place == place)
      return known.is;
  Value *number = builder.constant(Constant::ofInteger(place), Element::kI32, range);
  Value *is = builder.elementwise(Op::kEqual, Element::kBool, {index, number}, range);
  if (!index->name.empty() && !isConstant(is))
    is->name = program.keepText("is_" + std::string(index->name) + "_" + std::to_string(place));
  places.push_back({index, place, is});
  return is;
}

} // namespace nsa::language
