// Statements, and the programs of a grid.
#include "runtime/program/interpreter/evaluator.h"

#include <algorithm>
#include <array>

namespace nsa::interpreter {

using namespace language;

TileFindings Evaluator::run() {
  declare();
  for (const GridItem::Dimension &dimension : gridItem->dimensions)
    for (const Binding &part : dimension.parts)
      gridParts.emplace_back(part.name.text, integer(*part.value));
  int64_t count = 1;
  for (const auto &[name, size] : gridParts)
    count *= std::max<int64_t>(size, 0);
  for (program = 0; program < count; ++program) {
    int64_t rest = program;
    for (const auto &[name, size] : gridParts) {
      grid[name] = TileValue::of(Element::kI32, static_cast<double>(rest % size));
      rest /= size;
    }
    runProgram();
    ++findings.programs;
  }
  for (FaultPlace &each : faults) {
    if (each.count > 1)
      each.message.note("it is the first one of " + std::to_string(each.count) + " elements");
    findings.faults.push_back({each.kind, each.message.toString(), each.count});
  }
  return std::move(findings);
}

Diagnostic *Evaluator::fault(Fault::Kind kind, const SourceRange &range) {
  const auto found = std::ranges::find_if(faults, [&](const FaultPlace &each) {
    return each.kind == kind && each.message.range.file == range.file && each.message.range.begin == range.begin;
  });
  if (found != faults.end()) {
    ++found->count;
    return nullptr;
  }
  Diagnostic message;
  message.range = range;
  return &faults.emplace_back(kind, std::move(message), 1).message;
}

std::string Evaluator::programText(int64_t number) const {
  std::string text;
  for (const auto &[name, size] : gridParts) {
    text.append(text.empty() ? "" : ", ").append(name).append(" = " + std::to_string(number % size));
    number /= size;
  }
  return text.empty() ? "the only program" : "the program " + text;
}

void Evaluator::runProgram() {
  frames.clear();
  frames.emplace_back().scopes.emplace_back();
  statements(body);
}

bool Evaluator::statements(std::span<const Statement *const> list) {
  return std::ranges::all_of(list, [&](const Statement *each) { return statement(*each); });
}

bool Evaluator::block(const Block &block) {
  frames.back().scopes.emplace_back();
  const bool goesOn = statements(block.statements);
  frames.back().scopes.pop_back();
  return goesOn;
}

bool Evaluator::statement(const Statement &statement) {
  switch (statement.kind) {
  case StatementKind::kLet:
    let(as<LetStatement>(statement));
    return true;
  case StatementKind::kVar:
    var(as<VarStatement>(statement));
    return true;
  case StatementKind::kAssign: {
    const auto &assignment = as<AssignStatement>(statement);
    TileValue value = expr(*assignment.value);
    for (size_t i = 0; i < assignment.target.names.size(); ++i)
      assign(assignment.target.names[i], assignment.target.isTuple ? value.parts[i] : value);
    return true;
  }
  case StatementKind::kAdd: {
    const auto &sum = as<AddStatement>(statement);
    const TileValue *target = find(sum.target.text);
    if (!target)
      fail(sum.target.range, "is no variable");
    assign(sum.target, elementwise(Operation::kAdd, std::array{*target, expr(*sum.value)}, statement.range));
    return true;
  }
  case StatementKind::kIf: {
    const auto &branch = as<IfStatement>(statement);
    if (truth(*branch.condition))
      return block(branch.then);
    return !branch.otherwise || block(*branch.otherwise);
  }
  case StatementKind::kFor:
    return loop(as<ForStatement>(statement));
  case StatementKind::kForAxis:
    return loop(as<ForAxisStatement>(statement));
  case StatementKind::kStore:
    store(as<StoreStatement>(statement));
    return true;
  case StatementKind::kReport:
    report(as<ReportStatement>(statement));
    return true;
  case StatementKind::kReturnIf:
    return !truth(*as<ReturnIfStatement>(statement).condition);
  case StatementKind::kCall:
  case StatementKind::kReturn:
    break;
  }
  fail(statement.range, "the interpreter has no such statement");
}

void Evaluator::let(const LetStatement &statement) {
  for (const LetStatement::Binding &binding : statement.bindings) {
    TileValue value = expr(*binding.value);
    for (size_t i = 0; i < binding.target.names.size(); ++i)
      bind(binding.target.names[i], binding.target.isTuple ? value.parts[i] : value);
  }
}

void Evaluator::var(const VarStatement &statement) {
  for (const VarStatement::Variable &variable : statement.variables) {
    TileValue value = expr(*variable.value);
    if (variable.type && value.isTile()) {
      value = converted(value, element(variable.type->element));
      AxisSet own;
      for (const Name &name : variable.type->axes)
        own.insert(axis(name));
      value = widened(value, own);
    } else if (value.isConstant()) {
      value = converted(value, value.element == Element::kTruth  ? Element::kBool
                               : value.element == Element::kReal ? Element::kF32
                                                                 : Element::kI32);
    }
    bind(variable.name, std::move(value));
  }
}

void Evaluator::assign(const Name &target, TileValue value) {
  TileValue *variable = find(target.text);
  if (!variable)
    fail(target.range, "is no variable");
  if (!value.isTile()) {
    *variable = std::move(value);
    return;
  }
  // A variable keeps its axes and its type.
  value = widened(converted(value, variable->element), variable->axisSet());
  if (value.axes != variable->axes)
    fail(target.range, "the value has more axes than the variable");
  *variable = std::move(value);
}

bool Evaluator::loop(const ForStatement &statement) {
  const int64_t low = integer(*statement.low), high = integer(*statement.high);
  const Axis *by = statement.by.isEmpty() ? nullptr : axis(statement.by);
  const int64_t step = by ? by->extent : statement.step ? integer(*statement.step) : 1;
  for (int64_t i = low; i < high; i += step) {
    frames.back().scopes.emplace_back();
    TileValue index = TileValue::of(Element::kI32, static_cast<double>(i));
    if (by) {
      index = elementwise(Operation::kAdd, std::array{index, TileValue::iota(by)}, statement.range);
      std::vector<bool> places;
      for (const Cell &cell : index.cells)
        places.push_back(cell.value < static_cast<double>(high));
      index.existOnly(by, places);
    }
    bind(statement.index, std::move(index));
    const bool goesOn = statements(statement.body.statements);
    frames.back().scopes.pop_back();
    if (!goesOn)
      return false;
  }
  return true;
}

bool Evaluator::loop(const ForAxisStatement &statement) {
  const Axis *along = axis(statement.axis);
  for (int64_t i = 0; i < along->extent; ++i) {
    frames.back().scopes.emplace_back();
    bind(statement.index,
         TileValue::of(statement.isStatic ? Element::kInteger : Element::kI32, static_cast<double>(i)));
    const bool goesOn = statements(statement.body.statements);
    frames.back().scopes.pop_back();
    if (!goesOn)
      return false;
  }
  return true;
}

void Evaluator::report(const ReportStatement &statement) {
  if (truth(*statement.condition))
    findings.reports.emplace_back(integer(*statement.code), integer(*statement.place));
}

void Evaluator::bind(const Name &name, TileValue value) {
  frames.back().scopes.back().insert_or_assign(std::string(name.text), std::move(value));
}

TileValue *Evaluator::find(std::string_view name) {
  std::vector<Scope> &scopes = frames.back().scopes;
  for (size_t i = scopes.size(); i-- > 0;)
    if (const auto found = scopes[i].find(name); found != scopes[i].end())
      return &found->second;
  return nullptr;
}

} // namespace nsa::interpreter
