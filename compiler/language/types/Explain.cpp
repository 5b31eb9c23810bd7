#include "compiler/language/types/Explain.h"

#include "compiler/language/types/Values.h"

namespace nsa::language {

namespace {

struct Infix {
  std::string_view sign;
  int binding; // a higher one binds tighter
};

// Of an operation that is written between its operands; a binding of 0: it is none.
Infix infixOf(Op op) {
  switch (op) {
  case Op::kOr:
    return {" || ", 1};
  case Op::kAnd:
    return {" && ", 2};
  case Op::kEqual:
    return {" == ", 3};
  case Op::kUnequal:
    return {" != ", 3};
  case Op::kLess:
    return {" < ", 3};
  case Op::kLessEqual:
    return {" <= ", 3};
  case Op::kGreater:
    return {" > ", 3};
  case Op::kGreaterEqual:
    return {" >= ", 3};
  case Op::kAdd:
    return {" + ", 4};
  case Op::kSubtract:
    return {" - ", 4};
  case Op::kMultiply:
    return {" * ", 5};
  case Op::kDivide:
    return {" / ", 5};
  case Op::kRemainder:
    return {" % ", 5};
  default:
    return {"", 0};
  }
}

std::string write(const Value &value, int outer, bool isWhole = false) {
  if (value.op == Op::kConstant)
    return toString(value.number);
  if (!value.name.empty() && !isWhole)
    return std::string(value.name);
  if (value.size > kMostFormulaSize)
    return "..";
  const auto operand = [&](size_t number, int binding) { return write(*value.operands[number], binding); };
  const auto bracketed = [&](std::string text, int binding) { return binding < outer ? "(" + text + ")" : text; };
  if (const Infix infix = infixOf(value.op); infix.binding)
    return bracketed(operand(0, infix.binding) + std::string(infix.sign) + operand(1, infix.binding + 1),
                     infix.binding);
  switch (value.op) {
  case Op::kIota:
    return "iota(" + std::string(value.axis->name) + ")";
  case Op::kBelow:
  case Op::kWiden:
    return write(*value.operands[0], outer, isWhole && value.operands[0]->name == value.name);
  case Op::kSelect:
    return bracketed(operand(0, 1) + " ? " + operand(1, 1) + " : " + operand(2, 1), 0);
  case Op::kNegate:
    return "-" + operand(0, 6);
  case Op::kNot:
    return "!" + operand(0, 6);
  case Op::kMin:
  case Op::kMax:
    return (value.op == Op::kMin ? "min(" : "max(") + operand(0, 0) + ", " + operand(1, 0) + ")";
  case Op::kInRange:
    return bracketed(operand(0, 4) + " in 0 .. " + operand(1, 4), 3);
  case Op::kPresent:
    return operand(0, 6) + ".present";
  case Op::kCast:
    return bracketed(operand(0, 6) + " as " + std::string(nameOf(value.element)), 5);
  default:
    return "..";
  }
}

class Explainer {
public:
  explicit Explainer(const Program &program) : program(program) {}

  std::string run() {
    block(program.body, 0);
    return std::move(out);
  }

private:
  void block(const Body *body, size_t indent) {
    for (const Value *value : body->values)
      explainValue(*value, indent);
  }

  void explainValue(const Value &value, size_t indent) {
    if (value.op == Op::kEnds) {
      const Value &formula = *value.operands[0];
      line(indent, std::string(formula.name) + ": " + program.typeText(formula) + " = " + write(formula, 0, true) +
                       existence(formula));
      return;
    }
    if (value.op == Op::kFor) {
      const Loop &loop = *value.loop;
      line(indent, "for " + std::string(loop.index->name) + " in " + textOf(*loop.low) + " .. " + textOf(*loop.high) +
                       (loop.step == 1 ? "" : " step " + std::to_string(loop.step)));
      block(loop.body, indent + 1);
      tiles(loop.results, indent);
      return;
    }
    if (value.op == Op::kIf) {
      line(indent, "if " + textOf(*value.operands[0]));
      block(value.branch->then, indent + 1);
      if (!value.branch->otherwise->values.empty()) {
        line(indent, "else");
        block(value.branch->otherwise, indent + 1);
      }
      tiles(value.branch->results, indent);
      return;
    }
    if (!value.isTile())
      return;
    const std::string name = value.name.empty() ? "(a part)" : std::string(value.name);
    std::string text = name + ": " + program.typeText(value) + existence(value);
    if (value.op == Op::kMask)
      text +=
          isConstant(value.operands[2], 1) ? "; masked in every tile" : "; masked where " + textOf(*value.operands[2]);
    if (value.op == Op::kFill)
      text += "; filled with " + toString(value.number) + " where not " + textOf(*value.operands[1]);
    if (value.op == Op::kDot && value.operands[3])
      text += isConstant(value.operands[3], 1) ? "; zero annihilates"
                                               : "; zero annihilates where " + textOf(*value.operands[3]);
    const bool isSaid = !value.name.empty() || value.op == Op::kMask || value.op == Op::kFill || value.op == Op::kDot;
    if (isSaid)
      line(indent, text);
  }

  // What a loop or a branch hands on.
  void tiles(std::span<Value *const> results, size_t indent) {
    for (const Value *result : results)
      if (result->isTile())
        explainValue(*result, indent);
  }

  std::string existence(const Value &value) const {
    std::string text;
    for (const Presence &known : value.presence)
      text += (text.empty() ? "; exists where " : " && ") + textOf(*known.index) + " < " + textOf(*known.bound);
    return text;
  }

  void line(size_t indent, const std::string &text) { out += std::string(2 * indent, ' ') + text + "\n"; }

  const Program &program;
  std::string out;
};

} // namespace

std::string textOf(const Value &value) {
  // The edge of a mask is called so by the compiler, which says nothing.
  return write(value, 0, value.name == "is_edge");
}

std::string explain(const Program &program) { return Explainer(program).run(); }

} // namespace nsa::language
