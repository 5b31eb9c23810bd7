#include "compiler/language/types/Elaborator.h"

#include "compiler/language/syntax/Suggestion.h"
#include "compiler/language/types/Types.h"

#include <algorithm>

namespace nsa::language {

std::unique_ptr<Program> typeProgram(const SyntaxTree &kernel, const LibraryResolver &libraries,
                                     const GivenValues &given, Diagnostics &diagnostics) {
  auto program = std::make_unique<Program>();
  Declarations declarations(given, *program, diagnostics);
  if (!declarations.read(kernel, libraries))
    return nullptr;
  Elaborator(declarations, *program, diagnostics).run();
  return diagnostics.hasErrors() ? nullptr : std::move(program);
}

void Elaborator::run() {
  program.body = builder.newBody();
  ValueBuilder::Inside inside(builder, program.body);
  // The first scope has what functions see as well: where the program stands in the grid.
  scopes.emplace_back();
  declareGrid();
  scopes.emplace_back();
  statements(declarations.body);
  if (firstBeyond.file)
    diagnostics
        ->error(firstBeyond,
                "the program is too large: more than " + std::to_string(kMostValues) + " operations before this one")
        .hint("a call of a function counts as often as it is made, and a static loop as often as it turns");
}

bool Elaborator::mayGoOn(const SourceRange &range) {
  if (diagnostics->isFull())
    return false;
  const bool isSmall = ++steps <= kMostValues && program.valueCount <= kMostValues;
  if (!isSmall && !firstBeyond.file)
    firstBeyond = range;
  return isSmall;
}

// ---------------------------------------------------------------------------------------------------------- messages

Diagnostic &Elaborator::error(const SourceRange &range, std::string text) {
  Diagnostic &message = diagnostics->error(range, std::move(text));
  for (auto call = calls.rbegin(); call != calls.rend(); ++call)
    message.note((*call)->range, "in the call of '" + std::string((*call)->callee.text) + "'");
  return message;
}

std::string Elaborator::describe(const Typed &typed) const {
  switch (typed.kind) {
  case Typed::Kind::kNone:
    return "nothing";
  case Typed::Kind::kNumber:
    return "the number " + toString(typed.number);
  case Typed::Kind::kTuple:
    return "a tuple of " + std::to_string(typed.elements.size());
  case Typed::Kind::kRecord:
    return "a record " + std::string(typed.record->name);
  case Typed::Kind::kStack:
    return "values along '" + std::string(typed.axis->name) + "'";
  case Typed::Kind::kValue:
    break;
  }
  if (typed.is(Form::kTensor))
    return "a tensor";
  if (typed.is(Form::kList))
    return "a list";
  return program.typeText(*typed.value);
}

Typed Elaborator::unknownName(const SourceRange &range, std::string_view name) {
  std::vector<std::string_view> known = declarations.names();
  known.insert(known.end(), builtInNumbers().begin(), builtInNumbers().end());
  for (const Scope &scope : scopes)
    for (const auto &[text, binding] : scope.names)
      known.push_back(text);
  std::ranges::sort(known);
  Diagnostic &message = error(range, "unknown name '" + std::string(name) + "'");
  if (const std::string_view nearest = nearestWord(name, known); !nearest.empty()) {
    const Binding *binding = find(nearest);
    const SourceRange *place = binding ? &binding->range : declarations.placeOf(nearest);
    message.hint(
        "did you mean '" + std::string(nearest) + "'" +
        (place && place->file == range.file ? " (line " + std::to_string(place->position().line) + ")?" : "?"));
  }
  return {};
}

// ------------------------------------------------------------------------------------------------------------- names

Elaborator::Binding *Elaborator::find(std::string_view name) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (const auto found = scope->names.find(name); found != scope->names.end())
      return found->second;
    if (scope->isFunction)
      break;
  }
  const auto found = scopes.front().names.find(name);
  return found == scopes.front().names.end() ? nullptr : found->second;
}

Typed Elaborator::nameValue(const NameExpr &expr) {
  const std::string_view name = expr.text;
  if (const Binding *binding = find(name))
    return binding->value;
  if (ScalarArgument *argument = declarations.scalar(name)) {
    argument->isUsed = true;
    Value *&value = argumentValues[argument];
    if (!value) {
      value = program.arena.make<Value>();
      value->op = Op::kArgument;
      value->form = Form::kScalar;
      value->element = argument->element;
      value->range = argument->range;
      value->name = argument->name;
      value->argument = argument;
    }
    return Typed::of(value);
  }
  if (Tensor *tensor = declarations.tensor(name))
    return tensorValue(tensor);
  if (name == "log2_e")
    return Typed::of(Constant::ofReal(1.44269504088896));
  if (name == "ln_2")
    return Typed::of(Constant::ofReal(0.693147180559945));
  if (declarations.axis(name)) {
    error(expr.range, "'" + std::string(name) + "' is an axis").hint("its index is iota(" + std::string(name) + ")");
    return {};
  }
  if (const std::optional<Constant> constant = declarations.constant(name))
    return Typed::of(*constant);
  // Of a name whose declaration is wrong, no more is said.
  if (declarations.placeOf(name) && diagnostics->hasErrors())
    return {};
  if (declarations.placeOf(name) || declarations.function(name))
    return fail(expr.range, "'" + std::string(name) + "' is no value");
  return unknownName(expr.range, name);
}

Typed Elaborator::tensorValue(Tensor *tensor) {
  tensor->isUsed = true;
  Value *&value = tensorValues[tensor];
  if (!value) {
    value = program.arena.make<Value>();
    value->op = Op::kTensor;
    value->form = Form::kTensor;
    value->element = tensor->element;
    value->range = tensor->range;
    value->name = tensor->name;
    value->tensor = tensor;
  }
  return Typed::of(value);
}

const Axis *Elaborator::axis(const Name &name) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (const auto found = scope->axes.find(name.text); found != scope->axes.end())
      return found->second;
    if (scope->isFunction)
      break;
  }
  if (const Axis *found = declarations.axis(name.text))
    return found;
  std::vector<std::string_view> known;
  for (const Axis &axis : program.axes)
    known.push_back(axis.name);
  Diagnostic &message = error(name.range, "unknown axis '" + std::string(name.text) + "'");
  if (const std::string_view nearest = nearestWord(name.text, known); !nearest.empty())
    message.hint("did you mean '" + std::string(nearest) + "'?");
  return nullptr;
}

AxisSet Elaborator::axisSet(NameList names, bool &isKnown) {
  AxisSet set = 0;
  for (const Name &name : names) {
    const Axis *found = axis(name);
    isKnown &= found != nullptr;
    set |= found ? found->bit() : 0;
  }
  return set;
}

bool Elaborator::bind(const Name &name, const Typed &value, Origin origin) {
  const SourceRange *before = nullptr;
  for (auto scope = scopes.rbegin(); scope != scopes.rend() && !before; ++scope) {
    if (const auto found = scope->names.find(name.text); found != scope->names.end())
      before = &found->second->range;
    if (scope->isFunction)
      break;
  }
  // A function of a library cannot know what the kernel declares.
  if (!before && calls.empty())
    before = declarations.placeOf(name.text);
  if (before) {
    error(name.range, "'" + std::string(name.text) + "' is declared twice").note(*before, "first here");
    return false;
  }
  if (isBuiltInWord(name.text)) {
    error(name.range, "'" + std::string(name.text) + "' is a word of the language, and cannot be declared");
    return false;
  }
  Binding &binding = bindings.emplace_back(Binding{value, name.range, origin, name.text});
  scopes.back().names.emplace(name.text, &binding);
  return true;
}

void Elaborator::nameValueOf(const Typed &value, std::string_view name) {
  if (value.kind == Typed::Kind::kStack) {
    for (size_t i = 0; i < value.elements.size(); ++i)
      nameValueOf(value.elements[i], program.keepText(std::string(name) + "_" + std::to_string(i)));
    return;
  }
  if (value.kind != Typed::Kind::kValue || isConstant(value.value))
    return;
  Value *named = value.value;
  if (named->name.empty())
    named->name = name;
  // What has no name of its own in the text is called after what it is a part of.
  const auto part = [&](size_t number, std::string_view suffix) {
    Value *operand = named->operands[number];
    if (operand && operand->name.empty() && !isConstant(operand))
      operand->name = suffix.empty() ? name : program.keepText(std::string(name) + std::string(suffix));
  };
  if (named->op == Op::kBelow)
    part(0, "");
  if (named->op == Op::kMask)
    part(0, "_all");
  if (named->op == Op::kDot)
    part(2, "_begin");
  if (value.is(Form::kFormula))
    ends.anchor(value.value);
}

void Elaborator::declareGrid() {
  if (!declarations.grid)
    return;
  int64_t dimension = 0;
  for (const GridItem::Dimension &parts : declarations.grid->dimensions) {
    if (dimension == 3) {
      error(parts.range, "a grid has at most three dimensions");
      return;
    }
    if (parts.parts.empty()) {
      ++dimension;
      continue;
    }
    Value *programId =
        builder.make(Op::kProgramId, Form::kScalar, Element::kI32, 0, {}, parts.parts.front().name.range);
    programId->index = dimension++;
    // The last part is the fastest. The first one takes what is left.
    std::vector<std::pair<const language::Binding *, Value *>> values;
    Value *rest = programId;
    for (size_t i = parts.parts.size(); i-- > 0;) {
      const language::Binding &part = parts.parts[i];
      Diagnostics scratch;
      const std::optional<Constant> known =
          evaluateConstant(part.value, [this](std::string_view name) { return declarations.constant(name); }, scratch);
      // No two programs differ in a part of one place.
      if (known && known->kind == Constant::Kind::kInteger && known->integer == 1) {
        Value *zero = builder.constant(Constant::ofInteger(0), Element::kI32, part.name.range);
        bind(part.name, Typed::of(zero), Origin::kGrid);
        continue;
      }
      if (i == 0) {
        values.emplace_back(&part, rest);
        break;
      }
      Value *radix = known ? builder.constant(*known, Element::kI32, part.value->range)
                           : scalar(*part.value, Element::kI32, "the size of a part of the grid");
      if (!radix)
        return;
      // A size of the call may be 0, and then no program runs; but a division by it must not stop the others.
      if (!known && !isPositive(radix))
        radix = builder.elementwise(Op::kMax, Element::kI32,
                                    {radix, builder.constant(Constant::ofInteger(1), Element::kI32, part.value->range)},
                                    part.value->range);
      const SourceRange &range = part.name.range;
      Value *divided = builder.elementwise(Op::kDivide, Element::kI32, {rest, radix}, range);
      values.emplace_back(&part, builder.elementwise(Op::kRemainder, Element::kI32, {rest, radix}, range));
      rest = divided;
    }
    for (auto value = values.rbegin(); value != values.rend(); ++value) {
      // Parts beyond the bits are not told apart.
      if (gridParts.size() < 32) {
        value->second->parts = uint32_t{1} << gridParts.size();
        gridParts.push_back(value->first->name.text);
      }
      bind(value->first->name, Typed::of(value->second), Origin::kGrid);
      nameValueOf(Typed::of(value->second), value->first->name.text);
    }
  }
}

} // namespace nsa::language
