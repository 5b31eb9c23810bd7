#include "compiler/language/types/Elaborator.h"

#include <algorithm>

namespace nsa::language {

namespace {

// The single values that a typed value is made of, in a fixed order.
void collectLeaves(const Typed &typed, std::vector<Value *> &leaves) {
  if (typed.kind == Typed::Kind::kValue)
    leaves.push_back(typed.value);
  for (const Typed &element : typed.elements)
    collectLeaves(element, leaves);
}

// The same with other values. `next` is the first of those that are not used yet.
Typed withLeaves(const Typed &typed, std::span<Value *const> leaves, size_t &next, Arena &arena) {
  Typed result = typed;
  if (typed.kind == Typed::Kind::kValue)
    result.value = leaves[next++];
  if (!typed.elements.empty()) {
    std::vector<Typed> elements;
    for (const Typed &element : typed.elements)
      elements.push_back(withLeaves(element, leaves, next, arena));
    result.elements = arena.copy(elements);
  }
  return result;
}

// A loop's facts about a variable only grow weaker from one attempt to the next, and there are few of them.
constexpr int kMostAttempts = 8;

} // namespace

Elaborator::Saved Elaborator::save(const std::vector<Binding *> &assigned) const {
  Saved saved;
  for (Binding *binding : assigned)
    saved.emplace_back(binding, binding->value);
  return saved;
}

void Elaborator::restore(const Saved &saved) {
  for (const auto &[binding, value] : saved)
    binding->value = value;
}

std::vector<Value *> Elaborator::leavesOf(const std::vector<Binding *> &assigned) const {
  std::vector<Value *> leaves;
  for (const Binding *binding : assigned)
    collectLeaves(binding->value, leaves);
  return leaves;
}

std::vector<std::string_view> Elaborator::leafNames(const std::vector<Binding *> &assigned) const {
  std::vector<std::string_view> names;
  for (const Binding *binding : assigned) {
    if (binding->value.kind == Typed::Kind::kValue)
      names.push_back(binding->name);
    for (size_t i = 0; i < binding->value.elements.size(); ++i)
      if (binding->value.elements[i].kind == Typed::Kind::kValue)
        names.push_back(binding->value.record->members[i].name);
  }
  return names;
}

void Elaborator::setLeaves(const std::vector<Binding *> &assigned, std::span<Value *const> leaves) {
  size_t next = 0;
  for (Binding *binding : assigned)
    binding->value = withLeaves(binding->value, leaves, next, program.arena);
}

std::vector<Elaborator::Binding *> Elaborator::assignedIn(std::initializer_list<const Block *> blocks) {
  std::vector<Binding *> result;
  for (const Block *block : blocks)
    if (block)
      collectAssigned(block->statements, result);
  return result;
}

void Elaborator::collectAssigned(std::span<const Statement *const> list, std::vector<Binding *> &result) {
  const auto assigned = [&](const Name &name) {
    Binding *binding = find(name.text);
    // After an error a variable has no value.
    if (binding && binding->isVariable() && binding->value && std::ranges::find(result, binding) == result.end())
      result.push_back(binding);
  };
  for (const Statement *statement : list) {
    if (const auto *assignment = asIf<AssignStatement>(statement))
      for (const Name &name : assignment->target.names)
        assigned(name);
    if (const auto *sum = asIf<AddStatement>(statement))
      assigned(sum->target);
    if (const auto *branch = asIf<IfStatement>(statement)) {
      collectAssigned(branch->then.statements, result);
      if (branch->otherwise)
        collectAssigned(branch->otherwise->statements, result);
    }
    if (const auto *loop = asIf<ForStatement>(statement))
      collectAssigned(loop->body.statements, result);
    if (const auto *loop = asIf<ForAxisStatement>(statement))
      collectAssigned(loop->body.statements, result);
  }
}

Elaborator::Attempt::Attempt(Elaborator &elaborator, bool keepsRemarks)
    : elaborator(elaborator), outer(elaborator.diagnostics), keepsRemarks(keepsRemarks),
      knownPresences(elaborator.knownPresences.size()), places(elaborator.places.size()),
      picks(elaborator.picks.size()), knownEdges(elaborator.knownEdges.size()) {
  elaborator.diagnostics = &diagnostics;
}

Elaborator::Attempt::~Attempt() {
  elaborator.diagnostics = outer;
  elaborator.knownPresences.resize(knownPresences);
  elaborator.places.resize(places);
  elaborator.picks.resize(picks);
  elaborator.knownEdges.resize(knownEdges);
  if (isDiscarded)
    return;
  for (const Diagnostic &message : diagnostics.list())
    if (message.severity == Severity::kError)
      outer->error(message.range, {}) = message;
    else if (keepsRemarks)
      outer->warning(message.range, message.text) = message;
}

Value *Elaborator::derived(Op op, const Value *from, Body *body, int64_t number) {
  Value *value = program.arena.make<Value>();
  value->op = op;
  value->form = from->form;
  value->element = from->element;
  value->axes = from->axes;
  value->range = from->range;
  value->presence = builder.leaving(from->presence, body->depth);
  value->taints = builder.leaving(from->taints, body->depth);
  value->zero = from->zero;
  value->depth = body->depth;
  value->index = number;
  value->parts = ~uint32_t{0}; // it may depend on any
  return value;
}

void Elaborator::makeLoop(Loop &loop, const std::vector<Binding *> &assigned, const SourceRange &range,
                          const std::function<void()> &body) {
  const Saved before = save(assigned);
  const std::vector<Value *> initial = leavesOf(assigned);
  const std::vector<std::string_view> names = leafNames(assigned);
  // What is known of the variables where the body begins: at first what is known in front of the loop. What no turn
  // changes is found by the first attempt that is stable; from then on it is no variable of the loop.
  std::vector<Value *> carried, yielded;
  std::vector<bool> isKept(initial.size(), false);
  for (size_t i = 0; i < initial.size(); ++i)
    carried.push_back(derived(Op::kCarried, initial[i], builder.block(), static_cast<int64_t>(i)));
  for (int attempt = 0;; ++attempt) {
    loop.body = builder.newBody();
    Attempt trial(*this, true);
    ValueBuilder::Inside inside(builder, loop.body);
    for (size_t i = 0; i < carried.size(); ++i) {
      if (isKept[i])
        continue;
      carried[i]->depth = loop.body->depth;
      carried[i]->name = names[i];
    }
    setLeaves(assigned, carried);
    body();
    yielded = leavesOf(assigned);
    restore(before);
    std::vector<Value *> next;
    bool isStable = true;
    for (size_t i = 0; i < carried.size(); ++i) {
      if (isKept[i]) {
        next.push_back(initial[i]);
        continue;
      }
      Value *value = derived(Op::kCarried, carried[i], builder.block(), static_cast<int64_t>(i));
      const uint32_t outside = loop.body->depth - 1;
      value->presence = builder.united(carried[i]->presence, builder.leaving(yielded[i]->presence, outside));
      value->taints = builder.united(carried[i]->taints, builder.leaving(yielded[i]->taints, outside));
      value->zero &= yielded[i]->zero;
      isStable &= value->presence.size() == carried[i]->presence.size() &&
                  value->taints.size() == carried[i]->taints.size() && value->zero == carried[i]->zero;
      next.push_back(value);
    }
    if (isStable && !trial.hasErrors() && attempt < kMostAttempts)
      for (size_t i = 0; i < carried.size(); ++i)
        if (!isKept[i] && isConstant(initial[i]) && isSame(initial[i], yielded[i])) {
          isKept[i] = true;
          isStable = false;
          next[i] = initial[i];
        }
    if (isStable || trial.hasErrors() || attempt == kMostAttempts)
      break;
    carried = std::move(next);
    trial.discard();
  }
  const auto changed = [&](const std::vector<Value *> &leaves) {
    std::vector<Value *> list;
    for (size_t i = 0; i < leaves.size(); ++i)
      if (!isKept[i])
        list.push_back(leaves[i]);
    return builder.list(list);
  };
  loop.initial = changed(initial);
  loop.carried = changed(carried);
  loop.yielded = changed(yielded);
  Value *statement = builder.make(Op::kFor, Form::kStatement, Element::kNone, 0, {}, range);
  statement->loop = &loop;
  std::vector<Value *> results = initial;
  int64_t number = 0;
  for (size_t i = 0; i < carried.size(); ++i) {
    if (isKept[i])
      continue;
    results[i] = derived(Op::kResult, carried[i], builder.block(), number++);
    results[i]->operands = builder.list(std::span<Value *const>(&statement, 1));
    results[i]->name = names[i];
  }
  loop.results = changed(results);
  setLeaves(assigned, results);
}

void Elaborator::makeBranch(Value *condition, const std::vector<Binding *> &assigned, const SourceRange &range,
                            const std::function<void()> &then, const std::function<void()> &otherwise) {
  const Saved before = save(assigned);
  auto *branch = program.arena.make<Branch>();
  std::vector<Value *> sides[2];
  for (const bool holds : {true, false}) {
    Body *body = builder.newBody();
    (holds ? branch->then : branch->otherwise) = body;
    Attempt trial(*this, true);
    ValueBuilder::Inside inside(builder, body);
    knowPresent(condition, holds);
    const uint32_t outside = conditionParts;
    conditionParts |= condition->parts;
    holds ? then() : otherwise();
    conditionParts = outside;
    sides[holds ? 0 : 1] = leavesOf(assigned);
    restore(before);
  }
  branch->thenYielded = builder.list(sides[0]);
  branch->otherwiseYielded = builder.list(sides[1]);
  Value *statement = builder.make(Op::kIf, Form::kStatement, Element::kNone, 0, {condition}, range);
  statement->branch = branch;
  std::vector<Value *> results;
  const std::vector<std::string_view> names = leafNames(assigned);
  branch->names = program.arena.copy(names);
  for (size_t i = 0; i < sides[0].size(); ++i) {
    results.push_back(resultOf(statement, sides[0][i], sides[1][i], i));
    results.back()->name = names[i];
  }
  branch->results = builder.list(results);
  setLeaves(assigned, results);
}

Value *Elaborator::resultOf(Value *statement, const Value *left, const Value *right, size_t number) {
  Value *result = derived(Op::kResult, left, builder.block(), static_cast<int64_t>(number));
  const uint32_t depth = builder.block()->depth;
  result->presence = builder.united(result->presence, builder.leaving(right->presence, depth));
  result->taints = builder.united(result->taints, builder.leaving(right->taints, depth));
  result->zero = left->zero & right->zero;
  result->operands = builder.list(std::span<Value *const>(&statement, 1));
  return result;
}

void Elaborator::typedOnly(const std::function<void()> &body) {
  Attempt trial(*this, false);
  Body *scratch = builder.newBody();
  ValueBuilder::Inside inside(builder, scratch);
  // What only dead code names is no argument of the kernel.
  const auto usedOf = [](const auto &arguments) {
    std::vector<bool> used;
    for (const auto &argument : arguments)
      used.push_back(argument.isUsed);
    return used;
  };
  const std::vector<bool> tensors = usedOf(program.tensors), scalars = usedOf(program.scalars);
  body();
  for (size_t i = 0; i < tensors.size(); ++i)
    program.tensors[i].isUsed = tensors[i];
  for (size_t i = 0; i < scalars.size(); ++i)
    program.scalars[i].isUsed = scalars[i];
}

void Elaborator::ifStatement(const IfStatement &statement) {
  const Typed condition = expr(*statement.condition);
  if (!condition)
    return;
  const auto side = [&](const Block *syntax) {
    if (syntax)
      block(*syntax);
  };
  const std::vector<Binding *> assigned = assignedIn({&statement.then, statement.otherwise});
  if (condition.isNumber()) {
    const bool holds = condition.number.isTrue();
    const Saved before = save(assigned);
    typedOnly([&] { side(holds ? statement.otherwise : &statement.then); });
    restore(before);
    side(holds ? &statement.then : statement.otherwise);
    return;
  }
  Value *value = scalarOf(condition, Element::kBool, statement.condition->range, "a condition");
  if (value)
    makeBranch(value, assigned, statement.range, [&] { side(&statement.then); }, [&] { side(statement.otherwise); });
}

void Elaborator::returnIf(const ReturnIfStatement &statement) {
  const std::span<const Statement *const> rest = following;
  const Typed condition = expr(*statement.condition);
  if (!condition)
    return statements(rest);
  if (condition.isNumber()) {
    if (condition.number.isTrue())
      typedOnly([&] { statements(rest); });
    else
      statements(rest);
    return;
  }
  Value *value = scalarOf(condition, Element::kBool, statement.condition->range, "a condition");
  if (value)
    makeBranch(builder.negated(value), {}, statement.range, [&] { statements(rest); }, [] {});
}

bool Elaborator::loopSchedules(const ScheduleList &schedules, Loop &loop) {
  for (const Schedule &schedule : schedules) {
    const std::optional<int64_t> value = declarations.integer(schedule.value);
    if (!value)
      return false;
    if (schedule.name.text != "stages") {
      error(schedule.name.range, "a loop has no schedule '" + std::string(schedule.name.text) + "'")
          .hint("@stages(n) says how many tiles of a load are in shared memory at once");
      return false;
    }
    loop.stages = *value;
  }
  return true;
}

void Elaborator::forStatement(const ForStatement &statement) {
  auto *loop = program.arena.make<Loop>();
  *loop = Loop();
  loop->low = scalar(*statement.low, Element::kI32, "the begin of a loop");
  loop->high = scalar(*statement.high, Element::kI32, "the end of a loop");
  loop->by = statement.by.isEmpty() ? nullptr : axis(statement.by);
  loop->step = loop->by ? loop->by->extent : 1;
  if (!loop->low || !loop->high || !loopSchedules(statement.schedules, *loop) || (!statement.by.isEmpty() && !loop->by))
    return;
  if (statement.step) {
    const std::optional<int64_t> step = declarations.integer(statement.step);
    if (!step)
      return;
    if (*step < 1) {
      error(statement.step->range, "the step of a loop is " + std::to_string(*step) + ", must be positive");
      return;
    }
    loop->step = *step;
  }
  const std::vector<Binding *> assigned = assignedIn({&statement.body});
  makeLoop(*loop, assigned, statement.range, [&] {
    const SourceRange &range = statement.index.range;
    Value *index = program.arena.make<Value>();
    index->op = Op::kIndex;
    index->form = Form::kScalar;
    index->element = Element::kI32;
    index->range = range;
    index->name = statement.index.text;
    index->loop = loop;
    index->depth = builder.block()->depth;
    index->parts = loop->low->parts | loop->high->parts;
    loop->index = index;
    Value *value = index;
    scopes.emplace_back();
    if (loop->by) {
      Value *each = builder.elementwise(Op::kAdd, Element::kI32, {index, builder.iota(loop->by, range)}, range);
      each->name = program.keepText(std::string(statement.index.text) + "_index");
      value = bounded(each, loop->by, loop->high, range);
      value->name = each->name;
    }
    bind(statement.index, Typed::of(value), Origin::kLoop);
    statements(statement.body.statements);
    scopes.pop_back();
  });
}

void Elaborator::forAxis(const ForAxisStatement &statement) {
  const Axis *along = axis(statement.axis);
  if (!along)
    return;
  if (!along->isOuter) {
    error(statement.axis.range, "'" + std::string(along->name) + "' is no outer axis")
        .hint("walk along it with 'for .. in low .. high by " + std::string(along->name) + "'");
    return;
  }
  if (statement.isStatic) {
    for (int64_t i = 0; i < along->count && mayGoOn(statement.range); ++i) {
      scopes.emplace_back();
      bind(statement.index, Typed::of(Constant::ofInteger(i)), Origin::kLoop);
      statements(statement.body.statements);
      scopes.pop_back();
    }
    return;
  }
  auto *loop = program.arena.make<Loop>();
  *loop = Loop();
  loop->low = builder.constant(Constant::ofInteger(0), Element::kI32, statement.index.range);
  loop->high = builder.constant(Constant::ofInteger(along->count), Element::kI32, statement.axis.range);
  loop->step = 1;
  makeLoop(*loop, assignedIn({&statement.body}), statement.range, [&] {
    Value *index = program.arena.make<Value>();
    index->op = Op::kIndex;
    index->form = Form::kScalar;
    index->element = Element::kI32;
    index->range = statement.index.range;
    index->name = statement.index.text;
    index->loop = loop;
    index->depth = builder.block()->depth;
    loop->index = index;
    scopes.emplace_back();
    bind(statement.index, Typed::of(index), Origin::kLoop);
    statements(statement.body.statements);
    scopes.pop_back();
  });
}

// Whether a condition that holds says that a tensor is present. `c ? a.present : b.present` says it of `c ? a : b`.
static bool saysPresent(const Value *condition, const Value *tensor) {
  if (!tensor->tensor->isOptional || condition->op == Op::kPresent)
    return !tensor->tensor->isOptional || condition->operands[0] == tensor;
  return condition->op == Op::kSelect && tensor->op == Op::kSelect && condition->operands[0] == tensor->operands[0] &&
         saysPresent(condition->operands[1], tensor->operands[1]) &&
         saysPresent(condition->operands[2], tensor->operands[2]);
}

bool Elaborator::isPresent(const Value *tensor) const {
  return std::ranges::any_of(knownPresences, [&](const Value *condition) { return saysPresent(condition, tensor); });
}

void Elaborator::knowPresent(Value *condition, bool holds) {
  if (condition->size > kMostFormulaSize)
    return;
  if ((condition->op == Op::kPresent || condition->op == Op::kSelect) && holds)
    knownPresences.push_back(condition);
  if (condition->op == Op::kNot)
    knowPresent(condition->operands[0], !holds);
  if ((condition->op == Op::kAnd && holds) || (condition->op == Op::kOr && !holds))
    for (Value *operand : condition->operands)
      knowPresent(operand, holds);
}

} // namespace nsa::language
