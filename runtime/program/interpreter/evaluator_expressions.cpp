// Expressions other than calls and loads.
#include "runtime/program/interpreter/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace nsa::interpreter {

using namespace language;

namespace {

Operation operationOf(BinaryOp op) { return static_cast<Operation>(op); }
static_assert(static_cast<int>(Operation::kOr) == static_cast<int>(BinaryOp::kOr));

// The place of an outer axis; what does not have the axis is the same at each place.
TileValue component(const TileValue &value, const Axis *axis, int64_t place) {
  if (value.kind == TileValue::Kind::kStack && value.along == axis)
    return value.parts[static_cast<size_t>(place)];
  return value.isTile() ? sliced(value, axis, place) : value;
}

const Axis *stackAxis(std::span<const TileValue> operands) {
  for (const TileValue &operand : operands)
    if (operand.kind == TileValue::Kind::kStack)
      return operand.along;
  return nullptr;
}

TileValue stackOf(const Axis *along, std::vector<TileValue> parts) {
  TileValue result;
  result.kind = TileValue::Kind::kStack;
  result.along = along;
  result.parts = std::move(parts);
  return result;
}

} // namespace

TileValue Evaluator::expr(const Expr &expr) {
  switch (expr.kind) {
  case ExprKind::kNumber: {
    const auto &number = as<NumberExpr>(expr);
    return number.isInteger ? TileValue::of(Element::kInteger, static_cast<double>(number.integer))
                            : TileValue::of(Element::kReal, number.real);
  }
  case ExprKind::kBool:
    return TileValue::of(Element::kTruth, as<BoolExpr>(expr).value ? 1.0 : 0.0);
  case ExprKind::kName:
    return name(as<NameExpr>(expr));
  case ExprKind::kTuple: {
    TileValue tuple;
    tuple.kind = TileValue::Kind::kTuple;
    for (const Expr *part : as<TupleExpr>(expr).elements)
      tuple.parts.push_back(this->expr(*part));
    return tuple;
  }
  case ExprKind::kUnary: {
    const auto &unary = as<UnaryExpr>(expr);
    return elementwise(unary.op == UnaryOp::kNegate ? Operation::kNegate : Operation::kNot,
                       std::array{this->expr(*unary.operand)}, expr.range);
  }
  case ExprKind::kBinary:
    return binary(as<BinaryExpr>(expr));
  case ExprKind::kIn: {
    const auto &in = as<InExpr>(expr);
    const TileValue value = this->expr(*in.value);
    const TileValue begun = elementwise(Operation::kGreaterEqual, std::array{value, this->expr(*in.low)}, expr.range);
    const TileValue isBelow = elementwise(Operation::kLess, std::array{value, this->expr(*in.high)}, expr.range);
    return elementwise(Operation::kAnd, std::array{begun, isBelow}, expr.range);
  }
  case ExprKind::kBelow:
    return below(as<BelowExpr>(expr));
  case ExprKind::kConditional:
    return conditional(as<ConditionalExpr>(expr));
  case ExprKind::kCast: {
    const auto &cast = as<CastExpr>(expr);
    return castTo(this->expr(*cast.value), element(cast.element), expr.range);
  }
  case ExprKind::kField:
    return field(as<FieldExpr>(expr));
  case ExprKind::kPick: {
    const auto &pick = as<PickExpr>(expr);
    return picked(this->expr(*pick.base), axis(pick.axis), this->expr(*pick.index), expr.range);
  }
  case ExprKind::kLoad:
    return load(as<LoadExpr>(expr));
  case ExprKind::kCall:
    return call(as<CallExpr>(expr));
  }
  fail(expr.range, "is an expression of an unknown kind");
}

TileValue Evaluator::name(const NameExpr &expr) {
  if (const TileValue *bound = find(expr.text))
    return *bound;
  for (const auto *known : {&constants, &scalars, &grid})
    if (const auto found = known->find(expr.text); found != known->end())
      return found->second;
  if (const auto found = constantExprs.find(expr.text); found != constantExprs.end()) {
    // A comparison that a constant is made of is 0 or 1.
    TileValue value = this->expr(*found->second);
    if (value.element == Element::kTruth)
      value.element = Element::kInteger;
    return value;
  }
  for (Memory &memory : memories)
    if (memory.name == expr.text) {
      TileValue tensor;
      tensor.kind = TileValue::Kind::kTensor;
      tensor.memory = &memory;
      return tensor;
    }
  if (expr.text == "log2_e")
    return TileValue::of(Element::kReal, 1.4426950408889634);
  if (expr.text == "ln_2")
    return TileValue::of(Element::kReal, 0.6931471805599453);
  TileValue word = TileValue::of(Element::kWord, 0.0);
  word.word = std::string(expr.text);
  return word;
}

TileValue Evaluator::binary(const BinaryExpr &expr) {
  TileValue left = this->expr(*expr.left);
  const bool isAnd = expr.op == BinaryOp::kAnd;
  // Behind a constant that decides, nothing is computed. What a bool decides is computed for its axes alone.
  const bool decides = (isAnd || expr.op == BinaryOp::kOr) && left.isTile() && isBool(left.element) &&
                       left.axes.empty() && left.cells[0].isTrue() != isAnd;
  if (decides && left.isConstant())
    return left;
  const bool isByElement = (isAnd || expr.op == BinaryOp::kOr) && !left.axes.empty();
  unchosen += decides ? 1 : 0;
  chosenByElement += isByElement ? 1 : 0;
  const TileValue right = this->expr(*expr.right);
  unchosen -= decides ? 1 : 0;
  chosenByElement -= isByElement ? 1 : 0;
  if (left.element == Element::kWord && left.isTile() && right.element == Element::kWord)
    return TileValue::of(Element::kTruth, ((left.word == right.word) == (expr.op == BinaryOp::kEqual)) ? 1.0 : 0.0);
  return elementwise(operationOf(expr.op), std::array{left, right}, expr.range);
}

TileValue Evaluator::below(const BelowExpr &expr) {
  TileValue index = this->expr(*expr.index);
  const auto bound = static_cast<double>(integer(*expr.bound));
  if (!index.isTile() || index.axes.size() != 1)
    fail(expr.range, "'below' bounds an index of one axis");
  std::vector<bool> places;
  for (const Cell &cell : index.cells)
    places.push_back(cell.value < bound);
  index.existOnly(index.axes[0], places);
  return index;
}

TileValue Evaluator::conditional(const ConditionalExpr &expr) {
  const TileValue condition = this->expr(*expr.condition);
  const bool isOne = condition.isTile() && condition.axes.empty();
  if (isOne && condition.isConstant())
    return this->expr(condition.cells[0].isTrue() ? *expr.ifTrue : *expr.ifFalse);
  const bool onlyTrue = isOne && condition.cells[0].isTrue(), onlyFalse = isOne && !onlyTrue;
  unchosen += onlyFalse ? 1 : 0;
  chosenByElement += isOne ? 0 : 1;
  const TileValue ifTrue = this->expr(*expr.ifTrue);
  unchosen += (onlyTrue ? 1 : 0) - (onlyFalse ? 1 : 0);
  const TileValue ifFalse = this->expr(*expr.ifFalse);
  unchosen -= onlyTrue ? 1 : 0;
  chosenByElement -= isOne ? 0 : 1;
  return select(condition, ifTrue, ifFalse, expr.range);
}

TileValue Evaluator::select(const TileValue &condition, const TileValue &ifTrue, const TileValue &ifFalse,
                            const SourceRange &range) {
  const std::array operands = {condition, ifTrue, ifFalse};
  if (const Axis *along = stackAxis(operands)) {
    std::vector<TileValue> parts;
    for (int64_t i = 0; i < along->extent; ++i)
      parts.push_back(
          select(component(condition, along, i), component(ifTrue, along, i), component(ifFalse, along, i), range));
    return stackOf(along, std::move(parts));
  }
  if (!condition.isTile() || !isBool(condition.element))
    fail(range, "the condition is no bool");
  if (!ifTrue.isTile() || !ifFalse.isTile()) {
    if (ifTrue.kind != ifFalse.kind || ifTrue.parts.size() != ifFalse.parts.size() || !condition.axes.empty())
      fail(range, "the sides are of different kinds");
    TileValue result = condition.cells[0].isTrue() ? ifTrue : ifFalse;
    for (size_t i = 0; i < result.parts.size(); ++i)
      result.parts[i] = select(condition, ifTrue.parts[i], ifFalse.parts[i], range);
    return result;
  }
  Element type = Element::kF32;
  const auto bothAre = [&](auto is) { return is(ifTrue.element) && is(ifFalse.element); };
  if (bothAre(isBool))
    type = Element::kBool;
  else if (bothAre([](Element element) { return element == Element::kInteger; }))
    type = Element::kI32;
  else if (ifTrue.element == ifFalse.element)
    type = ifTrue.element == Element::kReal ? Element::kF32 : ifTrue.element;
  else if (ifTrue.isConstant() && !isStorage(ifFalse.element))
    type = ifFalse.element;
  else if (ifFalse.isConstant() && !isStorage(ifTrue.element))
    type = ifTrue.element;
  const TileValue left = converted(ifTrue, type), right = converted(ifFalse, type);
  return mapped(type, std::array{&condition, &left, &right},
                [](std::span<const Cell> cells) { return interpreter::select(cells[0], cells[1], cells[2]); });
}

TileValue Evaluator::castTo(const TileValue &value, Element element, const SourceRange &range) {
  if (value.kind == TileValue::Kind::kStack) {
    TileValue result = value;
    for (TileValue &part : result.parts)
      part = castTo(part, element, range);
    return result;
  }
  if (!value.isTile() || value.element == Element::kWord || isBool(value.element))
    fail(range, "cannot be cast");
  return mapped(element, std::array{&value},
                [&](std::span<const Cell> cells) { return interpreter::castTo(element, cells[0]); });
}

TileValue Evaluator::converted(const TileValue &value, Element element) {
  if (value.element == element)
    return value;
  TileValue result = value;
  result.element = element;
  if (!isBool(element))
    for (Cell &cell : result.cells)
      cell = roundedTo(element, cell);
  return result;
}

TileValue Evaluator::field(const FieldExpr &expr) {
  if (const auto *base = asIf<NameExpr>(expr.base); base && !find(base->text)) {
    if (expr.field.text == "max" && base->text == "i32")
      return TileValue::of(Element::kI32, double{std::numeric_limits<int32_t>::max()});
    if (expr.field.text == "max" && base->text == "f32")
      return TileValue::of(Element::kF32, static_cast<double>(std::numeric_limits<float>::max()));
    if (const RecordItem *zero = record(base->text); zero && expr.field.text == "zero") {
      TileValue value;
      value.kind = TileValue::Kind::kRecord;
      value.record = zero;
      for (const Field &each : zero->fields)
        value.parts.push_back(TileValue::of(element(each.type->element), 0.0));
      return value;
    }
  }
  const TileValue base = this->expr(*expr.base);
  if (base.kind == TileValue::Kind::kTensor && expr.field.text == "present")
    return TileValue::of(Element::kBool, base.memory->data ? 1.0 : 0.0);
  for (size_t i = 0; i < base.parts.size() && base.record; ++i)
    if (base.record->fields[i].name.text == expr.field.text)
      return base.parts[i];
  fail(expr.range, "there is no such field");
}

TileValue Evaluator::picked(const TileValue &base, const Axis *along, const TileValue &index,
                            const SourceRange &range) {
  const int64_t place = integer(index, range);
  if (place < 0 || place >= along->extent)
    fail(range, "the axis has no such place");
  if (base.kind == TileValue::Kind::kStack ? base.along != along : !base.hasAxis(along))
    fail(range, "the value does not have the axis");
  return component(base, along, place);
}

TileValue Evaluator::elementwise(Operation op, std::span<const TileValue> operands, const SourceRange &range) {
  if (const Axis *along = stackAxis(operands)) {
    std::vector<TileValue> parts;
    for (int64_t i = 0; i < along->extent; ++i) {
      std::vector<TileValue> each;
      for (const TileValue &operand : operands)
        each.push_back(component(operand, along, i));
      parts.push_back(elementwise(op, each, range));
    }
    return stackOf(along, std::move(parts));
  }
  Element type = Element::kInteger;
  bool isKnown = false;
  for (const TileValue &operand : operands) {
    if (!operand.isTile() || operand.element == Element::kWord)
      fail(range, "an operation of what is no number");
    const Element own = isStorage(operand.element) ? Element::kF32 : operand.element;
    if (isUntyped(own)) {
      if (!isKnown && own == Element::kReal)
        type = own;
      continue;
    }
    if (isKnown && type != own)
      fail(range, "an operation of two element types");
    type = own;
    isKnown = true;
  }
  for (const TileValue &operand : operands)
    if (isKnown && !isFloat(type) && operand.element == Element::kReal)
      fail(range, "an operation of two element types");
  const bool isOfFloats = op >= Operation::kFma && op != Operation::kAbs;
  if (isOfFloats && !isKnown)
    type = Element::kF32;
  std::vector<TileValue> typed;
  for (const TileValue &operand : operands)
    typed.push_back(isUntyped(type) || isBool(operand.element) ? operand : converted(operand, type));
  std::vector<const TileValue *> values;
  for (const TileValue &value : typed)
    values.push_back(&value);
  if ((op == Operation::kDivide || op == Operation::kRemainder) && type == Element::kI32)
    checkDivisor(values, range);
  const bool isTruth = isComparison(op) || op == Operation::kAnd || op == Operation::kOr || op == Operation::kNot;
  const Element result = !isTruth ? type
                         : std::ranges::all_of(operands, [](const auto &each) { return each.isConstant(); })
                             ? Element::kTruth
                             : Element::kBool;
  // NVRTC fuses products and sums.
  const bool isFusable = launch.isGpu && op == Operation::kMultiply && type == Element::kF32;
  return mapped(result, values, [&](std::span<const Cell> cells) {
    const Cell made =
        compute(op, type, cells[0], cells.size() > 1 ? cells[1] : Cell(), cells.size() > 2 ? cells[2] : Cell());
    return isFusable ? fusable(made, cells[0], cells[1]) : made;
  });
}

void Evaluator::checkDivisor(std::span<const TileValue *const> operands, const SourceRange &range) {
  if (unchosen > 0 || chosenByElement > 0)
    return;
  TileValue both;
  AxisSet axes;
  for (const TileValue *operand : operands) {
    both.inherit(*operand);
    axes.insert(operand->axes.begin(), operand->axes.end());
  }
  for (const auto &[axis, places] : both.exists)
    axes.insert(axis);
  Walk walk(axes, {operands.begin(), operands.end()});
  for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
    if (walk.at(1).isTrue() || walk.at(1).error != 0 || !walk.exists(both))
      continue;
    if (Diagnostic *message = fault(Fault::Kind::kDividedByZero, range)) {
      message->text = "an integer is divided by 0";
      message->note("it is " + (walk.axes().empty() ? "" : "at " + walk.placeText() + " of the tile, ") + "in " +
                    programText(program));
    }
  }
}

int64_t Evaluator::integer(const Expr &expr) { return integer(this->expr(expr), expr.range); }

int64_t Evaluator::integer(const TileValue &value, const SourceRange &range) {
  const bool isOne = value.isTile() && value.axes.empty() && !isFloat(value.element) && value.element != Element::kWord;
  if (!isOne || value.cells[0].error != 0)
    fail(range, "is no integer that is known");
  return static_cast<int64_t>(value.cells[0].value);
}

bool Evaluator::truth(const Expr &expr) {
  const TileValue value = this->expr(expr);
  if (!value.isTile() || !value.axes.empty() || (!isBool(value.element) && !value.isConstant()))
    fail(expr.range, "is no condition");
  if (value.cells[0].error != 0)
    fail(expr.range, "is not known");
  return value.cells[0].isTrue();
}

} // namespace nsa::interpreter
