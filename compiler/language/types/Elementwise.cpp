#include "compiler/language/types/Elaborator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::language {

namespace {

std::string_view spellingOf(Op op) {
  switch (op) {
  case Op::kAdd:
    return "+";
  case Op::kSubtract:
  case Op::kNegate:
    return "-";
  case Op::kMultiply:
    return "*";
  case Op::kDivide:
    return "/";
  case Op::kRemainder:
    return "%";
  case Op::kMin:
    return "min";
  case Op::kMax:
    return "max";
  case Op::kEqual:
    return "==";
  case Op::kUnequal:
    return "!=";
  case Op::kLess:
    return "<";
  case Op::kLessEqual:
    return "<=";
  case Op::kGreater:
    return ">";
  case Op::kGreaterEqual:
    return ">=";
  case Op::kAnd:
    return "&&";
  case Op::kOr:
    return "||";
  case Op::kNot:
    return "!";
  case Op::kSelect:
    return "?:";
  case Op::kFma:
    return "fma";
  case Op::kExp2:
    return "exp2";
  case Op::kLog2:
    return "log2";
  case Op::kErf:
    return "erf";
  case Op::kAbs:
    return "abs";
  case Op::kSqrt:
    return "sqrt";
  case Op::kRoundEven:
    return "roundeven";
  default:
    return "this";
  }
}

bool isOfFloats(Op op) { return op >= Op::kFma && op <= Op::kRoundEven && op != Op::kAbs; }

std::optional<BinaryOp> binaryOf(Op op) {
  if (op >= Op::kAdd && op <= Op::kRemainder)
    return static_cast<BinaryOp>(static_cast<int>(op) - static_cast<int>(Op::kAdd));
  if (op >= Op::kEqual && op <= Op::kOr)
    return static_cast<BinaryOp>(static_cast<int>(op) - static_cast<int>(Op::kEqual) +
                                 static_cast<int>(BinaryOp::kEqual));
  return std::nullopt;
}

} // namespace

Typed Elaborator::fold(Op op, std::span<const Typed> operands, const SourceRange &range) {
  const auto number = [&](size_t i) { return operands[i].number; };
  if (std::ranges::any_of(operands,
                          [](const Typed &operand) { return operand.number.kind == Constant::Kind::kWord; })) {
    if ((op != Op::kEqual && op != Op::kUnequal) || number(0).kind != number(1).kind)
      return fail(range, "words can only be compared with words, with == and !=");
    return Typed::of(Constant::ofBool((number(0).word == number(1).word) == (op == Op::kEqual)));
  }
  const bool isReal =
      std::ranges::any_of(operands, [](const Typed &operand) { return operand.number.kind == Constant::Kind::kReal; });
  if (const std::optional<BinaryOp> binary = binaryOf(op)) {
    const std::optional<Constant> result = foldConstants(*binary, number(0), number(1));
    return result ? Typed::of(*result) : fail(range, "division by zero");
  }
  switch (op) {
  case Op::kNegate:
    return Typed::of(isReal ? Constant::ofReal(-number(0).real) : Constant::ofInteger(-number(0).integer));
  case Op::kNot:
    return Typed::of(Constant::ofBool(!number(0).isTrue()));
  case Op::kMin:
  case Op::kMax: {
    const bool first = (number(0).real < number(1).real) == (op == Op::kMin);
    return Typed::of(isReal ? Constant::ofReal(number(first ? 0 : 1).real) : number(first ? 0 : 1));
  }
  case Op::kAbs: {
    if (isReal)
      return Typed::of(Constant::ofReal(std::abs(number(0).real)));
    const Typed zero = Typed::of(Constant::ofInteger(0));
    return number(0).integer < 0 ? fold(Op::kSubtract, std::array{zero, operands[0]}, range) : operands[0];
  }
  default:
    break;
  }
  // Functions of numbers are computed as f32, as those of other values are.
  std::vector<Typed> values;
  for (const Typed &operand : operands)
    values.push_back(Typed::of(builder.constant(operand.number, Element::kF32, range)));
  return elementwise(op, values, range, range);
}

const Axis *Elaborator::outerAxisOf(std::span<const Typed> operands) const {
  for (const Typed &operand : operands)
    if (operand.kind == Typed::Kind::kStack)
      return operand.axis;
  // Formulas along an outer axis stay formulas as long as no tile is among them.
  const bool hasTile = std::ranges::any_of(operands, [](const Typed &operand) { return operand.is(Form::kTile); });
  if (hasTile)
    for (const Typed &operand : operands)
      if (operand.is(Form::kFormula))
        for (const Axis *axis : program.listOf(operand.value->axes))
          if (axis->isOuter)
            return axis;
  return nullptr;
}

Typed Elaborator::component(const Typed &value, const Axis *axis, int64_t place) {
  if (value.kind == Typed::Kind::kStack && value.axis == axis)
    return value.elements[static_cast<size_t>(place)];
  if (value.is(Form::kFormula) && (value.value->axes & axis->bit())) {
    for (const KnownPick &known : picks)
      if (!known.stack && known.index == value.value && known.picked.number.integer == place)
        return Typed::of(known.picked.value);
    Value *number = builder.constant(Constant::ofInteger(place), Element::kI32, value.value->range);
    Value *result = builder.substituted(value.value, axis, number);
    if (result->name.empty() && !isConstant(result) && !value.value->name.empty())
      result->name = program.keepText(std::string(value.value->name) + "_" + std::to_string(place));
    Typed remembered = Typed::of(result);
    remembered.number = Constant::ofInteger(place);
    picks.push_back({nullptr, value.value, remembered});
    return Typed::of(result);
  }
  return value;
}

Typed Elaborator::expanded(Op op, std::span<const Typed> operands, const Axis *axis, const SourceRange &range,
                           const SourceRange &opRange) {
  std::vector<Typed> elements;
  for (int64_t place = 0; place < axis->count; ++place) {
    std::vector<Typed> each;
    for (const Typed &operand : operands)
      each.push_back(component(operand, axis, place));
    if (!elements.emplace_back(elementwise(op, each, range, opRange)))
      return {};
  }
  return {.kind = Typed::Kind::kStack, .elements = program.arena.copy(elements), .axis = axis};
}

Typed Elaborator::elementwise(Op op, std::span<const Typed> operands, const SourceRange &range,
                              const SourceRange &opRange) {
  for (const Typed &operand : operands)
    if (!operand)
      return {};
  if (op == Op::kSelect)
    return select(operands[0], operands[1], operands[2], range, opRange);
  if (const Axis *outer = outerAxisOf(operands))
    return expanded(op, operands, outer, range, opRange);
  if (std::ranges::all_of(operands, [](const Typed &operand) { return operand.isNumber(); }))
    return fold(op, operands, range);
  Element element = Element::kNone;
  for (const Typed &operand : operands) {
    if (!operand.isArithmetic() || operand.number.kind == Constant::Kind::kWord)
      return fail(range, "'" + std::string(spellingOf(op)) + "' of " + describe(operand));
    if (operand.isNumber())
      continue;
    const Element own = isStorage(operand.value->element) ? Element::kF32 : operand.value->element;
    if (element != Element::kNone && element != own) {
      Diagnostic &message = error(opRange, "'" + std::string(spellingOf(op)) + "' of " + std::string(nameOf(element)) +
                                               " and " + std::string(nameOf(own)));
      const bool isMixed = isFloat(element) != isFloat(own) && element != Element::kBool && own != Element::kBool;
      for (const Typed &side : operands)
        if (isMixed && !side.isNumber() && !isFloat(side.value->element)) {
          const std::string type(nameOf(side.value->element));
          message.note(side.value->range, (side.is(Form::kFormula) ? "this is an index, " : "this is ") + type);
          message.hint("write .. as f32");
          break;
        }
      return {};
    }
    element = own;
  }
  const bool isOfBools = op == Op::kAnd || op == Op::kOr || op == Op::kNot;
  const bool takesBools = isOfBools || op == Op::kEqual || op == Op::kUnequal;
  if (isOfBools != (element == Element::kBool) && !(takesBools && element == Element::kBool))
    return fail(opRange, "'" + std::string(spellingOf(op)) + "' of " + std::string(nameOf(element)));
  if (isOfFloats(op) && !isFloat(element))
    return fail(opRange, "'" + std::string(spellingOf(op)) + "' of " + std::string(nameOf(element)) +
                             ": it is a function of f32");
  if (op == Op::kRemainder && isFloat(element))
    return fail(opRange, "'%' of " + std::string(nameOf(element)));
  std::vector<Value *> values;
  for (const Typed &operand : operands) {
    Value *value = converted(operand, element, opRange);
    if (!value)
      return {};
    values.push_back(value);
  }
  return Typed::of(builder.elementwise(op, isComparison(op) ? Element::kBool : element, values, range));
}

Typed Elaborator::select(const Typed &condition, const Typed &ifTrue, const Typed &ifFalse, const SourceRange &range,
                         const SourceRange &opRange) {
  if (condition.isNumber())
    return condition.number.isTrue() ? ifTrue : ifFalse;
  const Typed operands[] = {condition, ifTrue, ifFalse};
  if (condition.is(Form::kScalar) && ifTrue.kind == ifFalse.kind &&
      (ifTrue.kind == Typed::Kind::kTuple || ifTrue.kind == Typed::Kind::kRecord)) {
    if (ifTrue.record != ifFalse.record || ifTrue.elements.size() != ifFalse.elements.size())
      return fail(opRange, "'?:' of " + describe(ifTrue) + " and " + describe(ifFalse));
    Typed result = ifTrue;
    std::vector<Typed> elements;
    for (size_t i = 0; i < ifTrue.elements.size(); ++i) {
      // A record of numbers only has members of a type.
      Typed left = ifTrue.elements[i], right = ifFalse.elements[i];
      if (ifTrue.record && left.isNumber() && right.isNumber()) {
        if (left.number == right.number) {
          elements.push_back(left);
          continue;
        }
        left = Typed::of(numberOf(left.number, ifTrue.record->members[i].element, range));
      }
      if (!elements.emplace_back(select(condition, left, right, range, opRange)))
        return {};
    }
    result.elements = program.arena.copy(elements);
    return result;
  }
  if (ifTrue.is(Form::kTensor) && ifFalse.is(Form::kTensor)) {
    Value *isTrue = scalarOf(condition, Element::kBool, range, "a condition");
    const Tensor &left = *ifTrue.value->tensor, &right = *ifFalse.value->tensor;
    if (!isTrue)
      return {};
    if (left.element != right.element || left.rank() != right.rank() || left.pageRows != right.pageRows ||
        left.hasColumns != right.hasColumns || left.record != right.record)
      return fail(opRange, "'" + std::string(left.name) + "' and '" + std::string(right.name) +
                               "' are of different types, so that none of them can be chosen");
    Value *chosen = builder.make(Op::kSelect, Form::kTensor, ifTrue.value->element, 0,
                                 {isTrue, ifTrue.value, ifFalse.value}, range);
    chosen->tensor = left.isOptional ? ifTrue.value->tensor : ifFalse.value->tensor;
    return Typed::of(chosen);
  }
  if (const Axis *outer = outerAxisOf(operands)) {
    std::vector<Typed> elements;
    for (int64_t place = 0; place < outer->count; ++place)
      if (!elements.emplace_back(select(component(condition, outer, place), component(ifTrue, outer, place),
                                        component(ifFalse, outer, place), range, opRange)))
        return {};
    return {.kind = Typed::Kind::kStack, .elements = program.arena.copy(elements), .axis = outer};
  }
  if (!condition.isArithmetic() || condition.value->element != Element::kBool)
    return fail(range, "the condition of '?:' is " + describe(condition));
  if (condition.is(Form::kScalar) && ifTrue.isNumber() && ifFalse.isNumber() && ifTrue.number == ifFalse.number)
    return ifTrue;
  Element element = Element::kNone;
  for (const Typed &side : {ifTrue, ifFalse}) {
    if (!side.isArithmetic() || side.number.kind == Constant::Kind::kWord)
      return fail(opRange, "'?:' of " + describe(ifTrue) + " and " + describe(ifFalse));
    if (side.isNumber())
      continue;
    const Element own = side.value->element;
    if (element == Element::kNone || element == own)
      element = own;
    else if ((isStorage(element) || element == Element::kF32) && (isStorage(own) || own == Element::kF32))
      element = Element::kF32;
    else
      return fail(opRange, "'?:' of " + std::string(nameOf(element)) + " and " + std::string(nameOf(own)));
  }
  if (element == Element::kNone) {
    const auto isKind = [&](Constant::Kind kind) { return ifTrue.number.kind == kind && ifFalse.number.kind == kind; };
    element = isKind(Constant::Kind::kBool)      ? Element::kBool
              : isKind(Constant::Kind::kInteger) ? Element::kI32
                                                 : Element::kF32;
  } else if (isStorage(element) && (ifTrue.isNumber() || ifFalse.isNumber())) {
    element = Element::kF32;
  }
  Value *left = converted(ifTrue, element, opRange), *right = converted(ifFalse, element, opRange);
  if (!left || !right)
    return {};
  return Typed::of(builder.elementwise(Op::kSelect, element, {condition.value, left, right}, range));
}

Value *Elaborator::converted(const Typed &value, Element element, const SourceRange &range) {
  if (value.isNumber()) {
    const Constant::Kind kind = value.number.kind;
    const bool fits = element == Element::kBool ? kind == Constant::Kind::kBool
                      : isFloat(element)        ? value.number.isNumber()
                                                : kind == Constant::Kind::kInteger;
    if (!fits) {
      error(range, describe(value) + " is no " + std::string(nameOf(element)));
      return nullptr;
    }
    return numberOf(value.number, element, range);
  }
  if (!value.isArithmetic()) {
    if (value)
      error(range, "expected " + std::string(nameOf(element)) + ", found " + describe(value));
    return nullptr;
  }
  if (value.value->element == element)
    return value.value;
  if (isStorage(value.value->element) && element == Element::kF32)
    return builder.elementwise(Op::kCast, element, {value.value}, value.value->range);
  error(range, "expected " + std::string(nameOf(element)) + ", found " + describe(value));
  return nullptr;
}

Value *Elaborator::numberOf(const Constant &number, Element element, const SourceRange &range) {
  if (element != Element::kI32)
    return builder.constant(number, element, range);
  const bool isReal = number.kind == Constant::Kind::kReal;
  const double value = isReal ? std::trunc(number.real) : static_cast<double>(number.integer);
  if (!(value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max())) {
    error(range, toString(number) + " does not fit i32")
        .hint("an i32 is a number from -2147483648 to 2147483647; with a point a number is f32");
    return nullptr;
  }
  return builder.constant(isReal ? Constant::ofInteger(static_cast<int64_t>(value)) : number, element, range);
}

Value *Elaborator::scalar(const Expr &expr, Element element, std::string_view what, std::string_view hint) {
  const Typed value = this->expr(expr);
  return value ? scalarOf(value, element, expr.range, what, hint) : nullptr;
}

Value *Elaborator::scalarOf(const Typed &value, Element element, const SourceRange &range, std::string_view what,
                            std::string_view hint) {
  const bool isNone = value.kind != Typed::Kind::kNumber && !value.is(Form::kScalar);
  if (isNone) {
    const std::string is =
        value.is(Form::kTile) || value.is(Form::kFormula)
            ? (value.value->element == element ? "a tile " + program.axesText(value.value->axes) : describe(value))
            : describe(value);
    Diagnostic &message =
        error(range, std::string(what) + " is one " + std::string(nameOf(element)) + "; this is " + is);
    if (!hint.empty())
      message.hint(std::string(hint));
    else if (element == Element::kBool)
      message.hint("c ? x : y chooses element by element; mask leaves out what is not allowed");
    return nullptr;
  }
  if (value.isNumber() && element == Element::kBool && value.number.kind == Constant::Kind::kInteger)
    return builder.constant(Constant::ofBool(value.number.isTrue()), element, range);
  return converted(value, element, range);
}

Value *Elaborator::fitted(const Typed &value, Element element, AxisSet axes, Form form, const SourceRange &range) {
  if (!value)
    return nullptr;
  if (form == Form::kScalar)
    return scalarOf(value, element, range, "this");
  Value *result = converted(value, element, range);
  if (!result)
    return nullptr;
  if (result->axes & ~axes) {
    error(range,
          "expected " + std::string(nameOf(element)) + program.axesText(axes) + ", found " + program.typeText(*result));
    return nullptr;
  }
  return builder.widened(result, axes, form);
}

} // namespace nsa::language
