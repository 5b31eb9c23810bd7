#include "compiler/language/types/Elaborator.h"

#include <algorithm>

namespace nsa::language {

void Elaborator::statements(std::span<const Statement *const> list) {
  const std::span<const Statement *const> outer = following;
  for (size_t i = 0; i < list.size() && mayGoOn(list[i]->range); ++i) {
    following = list.subspan(i + 1);
    if (list[i]->kind == StatementKind::kReturnIf) {
      // What follows is the other branch.
      returnIf(static_cast<const ReturnIfStatement &>(*list[i]));
      break;
    }
    statement(*list[i]);
  }
  following = outer;
}

void Elaborator::block(const Block &syntax) {
  scopes.emplace_back();
  statements(syntax.statements);
  scopes.pop_back();
}

void Elaborator::statement(const Statement &statement) {
  switch (statement.kind) {
  case StatementKind::kLet:
    return let(as<LetStatement>(statement));
  case StatementKind::kVar:
    return var(as<VarStatement>(statement));
  case StatementKind::kAssign: {
    const auto &assignment = as<AssignStatement>(statement);
    return assignTarget(assignment.target, expr(*assignment.value), assignment.value->range);
  }
  case StatementKind::kAdd:
    return add(as<AddStatement>(statement));
  case StatementKind::kCall:
    return insert(*as<CallStatement>(statement).call);
  case StatementKind::kIf:
    return ifStatement(as<IfStatement>(statement));
  case StatementKind::kFor:
    return forStatement(as<ForStatement>(statement));
  case StatementKind::kForAxis:
    return forAxis(as<ForAxisStatement>(statement));
  case StatementKind::kStore:
    return store(as<StoreStatement>(statement));
  case StatementKind::kReport:
    return report(as<ReportStatement>(statement));
  case StatementKind::kReturnIf:
  case StatementKind::kReturn:
    return; // statements() and inlined() see to them
  }
}

void Elaborator::let(const LetStatement &statement) {
  for (const LetStatement::Binding &binding : statement.bindings) {
    const Target &target = binding.target;
    pendingName = target.isTuple ? std::string_view() : target.names.front().text;
    boundAtTopLevel = isAtTopLevel() && !target.isTuple ? binding.value : nullptr;
    Typed value = expr(*binding.value);
    pendingName = {};
    boundAtTopLevel = nullptr;
    if (!target.isTuple) {
      // A name is bound after an error too, so that its uses are none.
      nameValueOf(value, target.names.front().text);
      bind(target.names.front(), value, Origin::kLet);
      continue;
    }
    if (value && (value.kind != Typed::Kind::kTuple || value.elements.size() != target.names.size())) {
      error(target.range, std::to_string(target.names.size()) + " names for " + describe(value));
      value = {};
    }
    for (size_t i = 0; i < target.names.size(); ++i) {
      const Typed element = value ? value.elements[i] : Typed();
      nameValueOf(element, target.names[i].text);
      bind(target.names[i], element, Origin::kLet);
    }
  }
}

void Elaborator::var(const VarStatement &statement) {
  for (const VarStatement::Variable &variable : statement.variables) {
    Typed value = expr(*variable.value);
    const SourceRange &range = variable.value->range;
    if (value && variable.type) {
      const TypeSyntax &type = *variable.type;
      std::optional<Element> element = Element::kF32;
      if (!type.element.isEmpty())
        element = declarations.element(type.element.text);
      bool isKnown = element.has_value();
      if (!isKnown)
        error(type.element.range, "unknown element type '" + std::string(type.element.text) + "'")
            .hint(hintOfElement(type.element.text));
      const AxisSet axes = axisSet(type.axes, isKnown);
      if (isKnown)
        value = Typed::of(fitted(value, *element, axes, type.hasAxes ? Form::kTile : Form::kScalar, range));
      else
        value = {};
    } else if (value.isNumber()) {
      const Element element = value.number.kind == Constant::Kind::kBool   ? Element::kBool
                              : value.number.kind == Constant::Kind::kReal ? Element::kF32
                                                                           : Element::kI32;
      value = Typed::of(numberOf(value.number, element, range));
    } else if (value.is(Form::kFormula)) {
      value = Typed::of(fitted(value, value.value->element, value.value->axes, Form::kTile, range));
    } else if (value.kind == Typed::Kind::kRecord) {
      // Its members are carried one by one, and have types.
      std::vector<Typed> members;
      for (size_t i = 0; i < value.elements.size(); ++i)
        members.push_back(
            Typed::of(fitted(value.elements[i], value.record->members[i].element, 0, Form::kScalar, range)));
      value.elements = program.arena.copy(members);
    } else if (value && !value.is(Form::kScalar) && !value.is(Form::kTile)) {
      error(range, "a variable cannot hold " + describe(value));
      value = {};
    }
    bind(variable.name, value, Origin::kVar);
  }
}

void Elaborator::assignTarget(const Target &target, const Typed &value, const SourceRange &range) {
  if (!target.isTuple) {
    assign(target.names.front(), value, range);
    return;
  }
  if (value && (value.kind != Typed::Kind::kTuple || value.elements.size() != target.names.size())) {
    error(target.range, std::to_string(target.names.size()) + " names for " + describe(value));
    return;
  }
  for (size_t i = 0; value && i < target.names.size(); ++i)
    assign(target.names[i], value.elements[i], range);
}

// Says what a name is that is no variable.
void Elaborator::refuseAssignment(const Name &target, const Binding *binding) {
  const std::string name(target.text);
  const FunctionItem *function = binding ? nullptr : declarations.function(target.text);
  const SourceRange *place = binding    ? &binding->range
                             : function ? &function->name.range
                                        : declarations.placeOf(target.text);
  if (!place) {
    unknownName(target.range, target.text);
    return;
  }
  std::string what = "no variable", hint = "declare a variable: var other = ..";
  if (!binding) {
    if (declarations.tensor(target.text)) {
      what = "a tensor";
      hint = "store " + name + "[..] = x writes to it";
    } else if (declarations.axis(target.text)) {
      what = "an axis";
    } else if (declarations.scalar(target.text)) {
      what = "a scalar of the call";
    } else if (function) {
      what = "a function";
    } else if (declarations.constant(target.text)) {
      what = "a constant";
    }
  } else if (binding->value.is(Form::kList)) {
    what = "a list";
    hint = "insert(" + name + ", scores, index) changes it";
  } else if (binding->origin == Origin::kLet) {
    what = "bound by let";
    hint = "declare it with var";
  } else {
    what = binding->origin == Origin::kLoop   ? "the index of a loop"
           : binding->origin == Origin::kGrid ? "a number of the grid"
                                              : "a parameter";
  }
  error(target.range, "'" + name + "' is " + what + " and cannot be assigned").note(*place, "declared here").hint(hint);
}

void Elaborator::assign(const Name &target, const Typed &value, const SourceRange &range) {
  Binding *binding = find(target.text);
  if (!binding || !binding->isVariable()) {
    refuseAssignment(target, binding);
    return;
  }
  if (!value || !binding->value)
    return;
  const Typed &old = binding->value;
  if (old.kind == Typed::Kind::kRecord) {
    if (value.kind != Typed::Kind::kRecord || value.record != old.record) {
      error(range, "'" + std::string(target.text) + "' is a record " + std::string(old.record->name) +
                       "; the value is " + describe(value));
      return;
    }
    std::vector<Typed> members;
    for (size_t i = 0; i < old.elements.size(); ++i)
      members.push_back(Typed::of(fitted(value.elements[i], old.record->members[i].element, 0, Form::kScalar, range)));
    binding->value.elements = program.arena.copy(members);
    return;
  }
  const Value &variable = *old.value;
  if (value.isArithmetic() && value.kind == Typed::Kind::kValue) {
    if (const AxisSet extra = value.value->axes & ~variable.axes; extra && variable.isTile()) {
      const Axis *axis = program.listOf(extra).front();
      Diagnostic &message = error(range, "'" + std::string(target.text) + "' is " + program.typeText(variable) +
                                             "; the value has also the axis '" + std::string(axis->name) + "'");
      if (const Value *origin = originOf(value.value, axis))
        message.note(origin->range, "'" + std::string(axis->name) + "' comes from here");
      message.hint("sum or multiply over " + std::string(axis->name) + " first");
      return;
    }
  }
  Value *fit = fitted(value, variable.element, variable.axes, variable.form, range);
  if (!fit)
    return;
  nameValueOf(Typed::of(fit), program.keepText(std::string(target.text) + "_next"));
  binding->value = Typed::of(fit);
}

// The named value, or the deepest one, from which the value has an axis.
const Value *Elaborator::originOf(const Value *value, const Axis *axis) {
  for (const Value *operand : value->operands)
    if (operand && (operand->axes & axis->bit()))
      return operand->name.empty() ? originOf(operand, axis) : operand;
  return value;
}

void Elaborator::add(const AddStatement &statement) {
  const Binding *binding = find(statement.target.text);
  if (!binding || !binding->isVariable()) {
    refuseAssignment(statement.target, binding);
    return;
  }
  // A sum with a product begins with what was there.
  if (const auto *product = asIf<CallExpr>(statement.value); product && product->callee.text == "dot") {
    const NameExpr target{{ExprKind::kName, 1, 0, statement.target.range}, statement.target.text};
    assign(statement.target, dot(*product, &target), statement.value->range);
    return;
  }
  const Typed value = expr(*statement.value);
  const SourceRange range = joined(statement.target.range, statement.value->range);
  if (!value || !binding->value)
    return;
  if (value.isArithmetic() && binding->value.isArithmetic() && elementOf(value) != Element::kNone &&
      !isStorage(elementOf(value)) && elementOf(value) != binding->value.value->element) {
    Diagnostic &message =
        error(statement.value->range, "'+=' of " + std::string(nameOf(binding->value.value->element)) + " and " +
                                          std::string(nameOf(elementOf(value))));
    if (isFloat(binding->value.value->element))
      message.hint("a number without a point is i32 where nothing else says more: write 1.0, or .. as f32");
    return;
  }
  assign(statement.target, elementwise(Op::kAdd, {binding->value, value}, range, statement.opRange),
         statement.value->range);
}

void Elaborator::store(const StoreStatement &statement) {
  Address address;
  if (!this->address(statement.place, true, address))
    return;
  const Value *tensor = address.tensor;
  for (Tensor &declared : program.tensors)
    if (tensorValues.contains(&declared) && &declared == tensor->tensor && !declared.stored.file)
      declared.stored = statement.range;
  if (!tensor->tensor->isOptional || isPresent(tensor)) {
    storeValue(address, *statement.value, statement);
    return;
  }
  Value *isThere = builder.make(Op::kPresent, Form::kScalar, Element::kBool, 0, {address.tensor}, statement.range);
  makeBranch(isThere, {}, statement.range, [&] { storeValue(address, *statement.value, statement); }, [] {});
}

void Elaborator::report(const ReportStatement &statement) {
  Tensor *status = declarations.tensor("status");
  if (!status) {
    error(statement.range, "a program that reports needs the tensor 'status'").hint("import status");
    return;
  }
  Value *code = scalar(*statement.code, Element::kI32, "a code");
  Value *place = scalar(*statement.place, Element::kI32, "the place of a report");
  Value *condition = scalar(*statement.condition, Element::kBool, "a condition");
  if (code && place && condition)
    builder.make(Op::kReport, Form::kStatement, Element::kNone, 0, {condition, code, place, tensorValue(status).value},
                 statement.range);
}

void Elaborator::insert(const CallExpr &call) {
  if (call.callee.text != "insert") {
    error(call.range, "the result of '" + std::string(call.callee.text) + "' is not used");
    return;
  }
  if (call.arguments.size() != 3) {
    error(call.range, "insert(list, scores, index) has 3 arguments, found " + std::to_string(call.arguments.size()));
    return;
  }
  const Typed list = expr(*call.arguments[0]);
  Value *scores = tile(*call.arguments[1], "scores");
  const Typed index = expr(*call.arguments[2]);
  if (!list || !scores || !index)
    return;
  if (!list.is(Form::kList)) {
    error(call.arguments[0]->range, "insert wants a list, this is " + describe(list));
    return;
  }
  const AxisSet columns = index.is(Form::kFormula) ? index.value->axes : 0;
  const std::vector<const Axis *> axes = program.listOf(columns);
  Sum first;
  if (axes.size() == 1)
    first.add(index.value, 1);
  const auto isIndex = [&](const std::pair<Value *, int64_t> &term) { return term.first->op == Op::kIota; };
  const auto term = std::ranges::find_if(first.terms, isIndex);
  if (axes.size() != 1 || term == first.terms.end() || term->second != 1 || list.value->axes == columns) {
    error(call.arguments[2]->range, "the index of an insert counts along one axis of the scores: first + iota(axis)");
    return;
  }
  if (scores->element != Element::kF32 || (scores->axes & ~(columns | list.value->axes))) {
    error(call.arguments[1]->range, "scores of this list are f32" + program.axesText(columns | list.value->axes) +
                                        ", these are " + program.typeText(*scores));
    return;
  }
  Value *begin = builder.substituted(index.value, axes.front(),
                                     builder.constant(Constant::ofInteger(0), Element::kI32, call.arguments[2]->range));
  scores = filled(scores, axes.front(), -kInfinity, call.range);
  scores = builder.widened(scores, columns | list.value->axes, Form::kTile);
  builder.make(Op::kInsert, Form::kStatement, Element::kNone, 0, {list.value, scores, begin}, call.range);
}

} // namespace nsa::language
