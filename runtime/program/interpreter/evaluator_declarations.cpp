// Declarations of a program: constants, the configuration, axes and tensors.
#include "runtime/base/text.h"
#include "runtime/program/interpreter/evaluator.h"

namespace nsa::interpreter {

using namespace language;

namespace {

TileValue given(const std::string &text) {
  int64_t number = 0;
  if (parseInteger(text, number))
    return TileValue::of(Element::kInteger, static_cast<double>(number));
  TileValue word = TileValue::of(Element::kWord, 0.0);
  word.word = text;
  return word;
}

} // namespace

void Evaluator::fail(const SourceRange &range, const std::string &text) {
  if (!range.file)
    throw Unable(text);
  const SourcePosition position = range.position();
  throw Unable(range.file->name() + ":" + std::to_string(position.line) + ":" + std::to_string(position.column) + ": " +
               text + ": " + inOneLine(range));
}

Evaluator::Evaluator(std::vector<const SyntaxTree *> trees, TileCall &call) : trees(std::move(trees)), launch(call) {
  frames.emplace_back().scopes.emplace_back();
}

void Evaluator::declare() {
  const auto dtype = launch.values.find("dtype");
  const std::string io = dtype == launch.values.end() ? "fp32" : dtype->second;
  constants.emplace("dtype", given(io));
  // Nothing that is defined by the language depends on how wide the vectors of a target are.
  for (const auto &[name, value] :
       std::initializer_list<std::pair<const char *, int64_t>>{{"cpu", launch.isGpu ? 0 : 1},
                                                               {"gpu", launch.isGpu ? 1 : 0},
                                                               {"dtype_bytes", io == "fp32" ? 4 : 2},
                                                               {"dot_step", 1},
                                                               {"vector_lanes", 1},
                                                               {"shared_limit", INT32_MAX}})
    constants.emplace(name, TileValue::of(Element::kInteger, static_cast<double>(value)));
  for (const SyntaxTree *tree : trees)
    for (const Item *item : tree->items)
      declare(*item);
  choose();
  for (const SyntaxTree *tree : trees)
    for (const Item *item : tree->items)
      if (const auto *declared = asIf<AxisItem>(item))
        for (const AxisItem::Axis &each : declared->axes)
          axes.push_back({std::string(each.name.text), axes.size(), constant(*each.extent), each.isOuter});
  for (const SyntaxTree *tree : trees)
    for (const Item *item : tree->items)
      if (const auto *declared = asIf<TensorItem>(item))
        for (const TensorItem::Declaration &each : declared->tensors)
          declareTensor(each);
}

void Evaluator::declare(const Item &item) {
  if (const auto *fixed = asIf<FixedItem>(&item)) {
    for (const Name &each : fixed->names)
      if (const auto found = launch.values.find(std::string(each.text)); found != launch.values.end())
        constants.emplace(each.text, given(found->second));
      else
        constants.emplace(each.text, TileValue::of(Element::kInteger, 0.0));
  } else if (const auto *constant = asIf<ConstItem>(&item)) {
    for (const Binding &binding : constant->bindings)
      constantExprs.emplace(binding.name.text, binding.value);
  } else if (const auto *code = asIf<CodeItem>(&item)) {
    for (const Binding &binding : code->bindings)
      constantExprs.emplace(binding.name.text, binding.value);
  } else if (const auto *choice = asIf<ChoiceItem>(&item)) {
    for (const ChoiceItem::Choice &each : choice->choices)
      choices.push_back(&each);
  } else if (const auto *require = asIf<RequireItem>(&item)) {
    requirements.push_back(require->condition);
  } else if (const auto *grid = asIf<GridItem>(&item)) {
    gridItem = grid;
  } else if (const auto *record = asIf<RecordItem>(&item)) {
    records.emplace(record->name.text, record);
  } else if (const auto *function = asIf<FunctionItem>(&item)) {
    functions.emplace(function->name.text, function);
  } else if (const auto *scalar = asIf<ScalarItem>(&item)) {
    for (const Field &field : scalar->scalars) {
      const auto found = launch.scalars.find(std::string(field.name.text));
      if (found == launch.scalars.end())
        fail(field.name.range, "the call has no such scalar");
      const Element type = element(field.type->element);
      scalars.emplace(field.name.text, TileValue::of(type, roundedTo(type, found->second)));
    }
  } else if (const auto *statement = asIf<StatementItem>(&item)) {
    body.push_back(statement->statement);
  }
}

// Takes what the call says, or else the first configuration in the order of the text, the last choice as the fastest.
void Evaluator::choose() {
  if (!launch.choices.empty()) {
    for (const ChoiceItem::Choice *choice : choices)
      if (const auto given = launch.choices.find(std::string(choice->name.text)); given != launch.choices.end())
        constants[given->first] = TileValue::of(Element::kInteger, static_cast<double>(given->second));
    return;
  }
  std::vector<size_t> numbers(choices.size(), 0);
  for (;;) {
    for (size_t i = 0; i < choices.size(); ++i)
      constants[std::string(choices[i]->name.text)] =
          TileValue::of(Element::kInteger, static_cast<double>(choices[i]->values[numbers[i]]->integer));
    if (isAdmitted())
      return;
    size_t i = choices.size();
    while (i > 0 && ++numbers[i - 1] == choices[i - 1]->values.size())
      numbers[--i] = 0;
    if (i == 0)
      throw Unable("no configuration is admitted");
  }
}

bool Evaluator::isAdmitted() {
  for (const Expr *condition : requirements)
    if (constant(*condition) == 0)
      return false;
  return true;
}

void Evaluator::declareTensor(const TensorItem::Declaration &declared) {
  if (declared.pageSize && constant(*declared.pageSize) != 0)
    fail(declared.range, "the interpreter has no pages");
  for (const Name &each : declared.names) {
    Memory &memory = memories.emplace_back();
    memory.name = std::string(each.text);
    memory.coordinates = declared.coordinates.size();
    memory.hasColumns = !declared.column.isEmpty();
    for (const Name &coordinate : declared.coordinates)
      memory.labels.emplace_back(coordinate.text);
    if (memory.hasColumns)
      memory.labels.emplace_back(declared.column.text);
    if (memory.hasColumns && !declared.columns)
      memory.columnAxis = axis(declared.column);
    memory.record = record(declared.element.text);
    if (memory.record)
      memory.element = Element::kI32;
    else
      memory.element = declared.element.isEmpty() ? element({"io", declared.range}) : element(declared.element);
    const auto found = launch.tensors.find(memory.name);
    if (found == launch.tensors.end()) {
      if (!declared.isOptional)
        fail(declared.range, "the call has no tensor " + memory.name);
      continue;
    }
    memory.data = &found->second;
    if (memory.data->element != memory.element ||
        memory.data->shape.size() != memory.coordinates + ((memory.hasColumns || memory.record) ? 1 : 0))
      fail(declared.range, "the call's tensor " + memory.name + " is another one");
    memory.stores.assign(memory.data->cells.size(), 0);
    memory.programs.assign(memory.data->cells.size(), -1);
  }
}

int64_t Evaluator::constant(const Expr &value) {
  const TileValue result = expr(value);
  if (!result.isConstant() || result.element == Element::kReal || result.element == Element::kWord)
    fail(value.range, "is no constant integer");
  return static_cast<int64_t>(result.cells[0].value);
}

Element Evaluator::element(const Name &name) {
  std::string_view text = name.text;
  if (const auto found = constants.find(text == "io" ? "dtype" : text); found != constants.end())
    text = found->second.word;
  for (const auto &[word, type] : std::initializer_list<std::pair<std::string_view, Element>>{{"", Element::kF32},
                                                                                              {"f32", Element::kF32},
                                                                                              {"fp32", Element::kF32},
                                                                                              {"f64", Element::kF64},
                                                                                              {"bf16", Element::kBf16},
                                                                                              {"fp16", Element::kF16},
                                                                                              {"i32", Element::kI32},
                                                                                              {"i64", Element::kI64},
                                                                                              {"bool", Element::kBool}})
    if (text == word)
      return type;
  fail(name.range, "is no element type");
}

const Axis *Evaluator::axis(const Name &name) {
  if (const auto found = frames.back().axes.find(name.text); found != frames.back().axes.end())
    return found->second;
  for (const Axis &each : axes)
    if (each.name == name.text)
      return &each;
  fail(name.range, "is no axis");
}

const RecordItem *Evaluator::record(std::string_view name) const {
  const auto found = records.find(name);
  return found == records.end() ? nullptr : found->second;
}

} // namespace nsa::interpreter
