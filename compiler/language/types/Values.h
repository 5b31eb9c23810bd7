// Makes the values of a typed program and puts them in their blocks. What a value is known for (presence, zeros, what a
// product has to annihilate) follows from its operands here, so that nothing else needs to keep these in step.
// Thread-safety: none.
#pragma once

#include "compiler/language/types/Program.h"

#include <initializer_list>
#include <string_view>

namespace nsa::language {

// What an expression stands for, before it must be one value.
struct Typed {
  enum class Kind : uint8_t { kNone, kNumber, kValue, kTuple, kRecord, kStack };

  Kind kind = Kind::kNone; // kNone after an error, which was reported
  Constant number = {};
  Value *value = nullptr;
  std::span<const Typed> elements = {}; // of a tuple, a record in the order of its members, a stack along `axis`
  const Record *record = nullptr;
  const Axis *axis = nullptr;

  static Typed of(Constant constant) { return {.kind = Kind::kNumber, .number = constant}; }
  static Typed of(Value *value) { return value ? Typed{.kind = Kind::kValue, .value = value} : Typed(); }

  explicit operator bool() const { return kind != Kind::kNone; }
  bool isNumber() const { return kind == Kind::kNumber; }
  bool is(Form form) const { return kind == Kind::kValue && value->form == form; }
  bool isArithmetic() const { return isNumber() || is(Form::kScalar) || is(Form::kFormula) || is(Form::kTile); }
};

class ValueBuilder {
public:
  explicit ValueBuilder(Program &program) : program(program) {}

  // The block to which values are added.
  Body *block() const { return current; }
  // Makes another block the current one until the guard dies.
  class Inside {
  public:
    Inside(ValueBuilder &builder, Body *block) : builder(builder), before(builder.current) { builder.current = block; }
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
    ~Inside() { builder.current = before; }

  private:
    ValueBuilder &builder;
    Body *before;
  };
  // A block inside of the current one.
  Body *newBody();

  // A new value, which is put at the end of the current block unless it is a formula.
  Value *make(Op op, Form form, Element element, AxisSet axes, std::initializer_list<Value *> operands,
              const SourceRange &range);
  Value *constant(const Constant &number, Element element, const SourceRange &range);
  Value *iota(const Axis *axis, const SourceRange &range);
  // An operation of elements. The operands have the types that it needs; numbers are constants. `element` is that of
  // the result. Operations of integer constants and trivial sums and products are folded.
  Value *elementwise(Op op, Element element, std::span<Value *const> operands, const SourceRange &range);
  Value *elementwise(Op op, Element element, std::initializer_list<Value *> operands, const SourceRange &range) {
    return elementwise(op, element, std::span<Value *const>(operands.begin(), operands.size()), range);
  }
  // The value as a tile or a formula over more axes.
  Value *widened(Value *value, AxisSet axes, Form form);
  Value *negated(Value *condition);

  // A formula with `by` in the place of the index along `axis`.
  Value *substituted(Value *formula, const Axis *axis, Value *by);

  const Axis *axis(uint8_t number) const { return program.axisNumber(number); }
  std::string_view keepText(std::string text) { return program.keepText(std::move(text)); }
  std::span<Value *const> list(std::span<Value *const> values) {
    return program.arena.copy(std::vector<Value *>(values.begin(), values.end()));
  }
  std::span<const Presence> united(std::span<const Presence> left, std::span<const Presence> right);
  std::span<const Taint> united(std::span<const Taint> left, std::span<const Taint> right);
  // What holds of a value in blocks outside of the one that it is made in.
  std::span<const Presence> leaving(std::span<const Presence> presence, uint32_t depth);
  std::span<const Taint> leaving(std::span<const Taint> taints, uint32_t depth);

private:
  Value *folded(Op op, Element element, std::span<Value *const> operands, const SourceRange &range);

  Program &program;
  Body *current = nullptr;
};

// Whether the value is this integer.
inline bool isConstant(const Value *value, int64_t number) {
  return value->op == Op::kConstant && value->number.kind != Constant::Kind::kReal && value->number.integer == number;
}
// Whether a number is at least 1 in every call: a maximum, a choice of such numbers, or the rounded quotient of one.
bool isPositive(const Value *size);
// Whether a number is at least 0 in every call: it is made of numbers of the grid, loops and constants that are.
bool isNonNegative(const Value *number);
inline bool isConstant(const Value *value) { return value->op == Op::kConstant; }
// Whether the operation computes one element from the same element of each operand.
inline bool isElementwise(Op op) { return op >= Op::kAdd && op <= Op::kBelow; }
// Whether two values are the same number wherever they stand, as they are made in the same way of the same values.
bool isSame(const Value *left, const Value *right);
// Whether a number is at most another one in every call.
bool isAtMost(const Value *number, const Value *limit);
inline bool isComparison(Op op) { return op >= Op::kEqual && op <= Op::kGreaterEqual; }

} // namespace nsa::language
