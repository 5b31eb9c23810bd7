#include "compiler/language/types/Declarations.h"

#include "compiler/language/syntax/FindName.h"
#include "compiler/language/syntax/Suggestion.h"
#include "runtime/base/problem.h"

#include <algorithm>
#include <array>
#include <limits>

namespace nsa::language {

namespace {

// Tiles are compiled in, and a larger one fits in no memory that is near.
constexpr int64_t kMostExtent = int64_t{1} << 20;

// Of a view of memory. The field of a record is one of its coordinates.
constexpr size_t kMostCoordinates = 4;
constexpr int64_t kMostColumns = std::numeric_limits<int32_t>::max();

constexpr std::string_view kBuiltInNumbers[] = {"ln_2", "log2_e"};

constexpr std::string_view kBuiltInFunctions[] = {
    "abs",  "ceildiv", "dot", "erf",  "exp2",    "fma",       "high",  "insert", "iota",  "last", "log2", "low",
    "mask", "max",     "min", "next", "present", "roundeven", "shift", "sqrt",   "stack", "sum",  "top"};

// The names of the elements of memory stand behind those of the language.
constexpr std::pair<std::string_view, Element> kElements[] = {
    {"bool", Element::kBool}, {"i32", Element::kI32},   {"i64", Element::kI64},
    {"f32", Element::kF32},   {"f64", Element::kF64},   {"io", Element::kIo},
    {"fp16", Element::kF16},  {"bf16", Element::kBf16}, {"fp32", Element::kF32}};
constexpr size_t kLanguageElements = 6;
constexpr std::string_view kGradient = "gradient"; // an element of tensors alone

} // namespace

bool isBuiltInWord(std::string_view name) {
  const auto elements = std::span(kElements).first(kLanguageElements);
  return std::ranges::find(kBuiltInNumbers, name) != std::end(kBuiltInNumbers) ||
         std::ranges::find(elements, name, &std::pair<std::string_view, Element>::first) != elements.end();
}
bool isBuiltInFunction(std::string_view name) {
  return std::ranges::find(kBuiltInFunctions, name) != std::end(kBuiltInFunctions);
}
std::span<const std::string_view> builtInFunctions() { return kBuiltInFunctions; }
std::span<const std::string_view> builtInNumbers() { return kBuiltInNumbers; }

std::string hintOfElement(std::string_view name) {
  std::vector<std::string_view> words;
  std::string list;
  for (const auto &[word, element] : kElements) {
    words.push_back(word);
    list.append(list.empty() ? "" : ", ").append(word);
  }
  const std::string_view nearest = nearestWord(name, words);
  return nearest.empty() ? "the element types are " + list : "did you mean " + quoted(nearest) + "?";
}

bool Declarations::read(const SyntaxTree &kernelTree, const LibraryResolver &libraries) {
  kernel = kernelTree.kernel;
  if (!kernel) {
    diagnostics.error({kernelTree.source, 0, 0}, "this file is no kernel").hint("it begins with: kernel NAME");
    return false;
  }
  program.kernel = kernel->name.text;
  program.range = kernel->name.range;
  for (const Name &name : kernel->operators)
    wordsOfKernel.insert(name.text);
  const std::optional<Constant> dtype = constant("dtype");
  program.ioType = !dtype || dtype->word == "fp32" ? "f32" : dtype->word == "fp16" ? "f16" : "bf16";
  const std::optional<Constant> cpu = constant("cpu");
  program.isGpu = cpu && !cpu->integer;
  program.productType = cpu && cpu->integer ? "f32" : program.ioType;
  // The axes, tensors and scalars of libraries come behind those of the file.
  for (const SyntaxTree *tree : filesOf(kernelTree, libraries, diagnostics))
    for (const Item *item : tree->items)
      readItem(*item);
  padAxes();
  return !diagnostics.hasErrors();
}

void Declarations::readItem(const Item &item) {
  switch (item.kind) {
  case ItemKind::kFixed:
    return readFixed(as<FixedItem>(item));
  case ItemKind::kConst:
    return readConstants(as<ConstItem>(item).bindings);
  case ItemKind::kCode:
    return readConstants(as<CodeItem>(item).bindings);
  case ItemKind::kChoice:
    for (const ChoiceItem::Choice &choice : as<ChoiceItem>(item).choices) {
      const auto found = given.find(choice.name.text);
      if (found != given.end())
        bind(choice.name, givenConstant(found->second));
      else
        bind(choice.name,
             choice.values.size() == 1 ? std::optional(Constant::ofInteger(choice.values[0]->integer)) : std::nullopt);
    }
    return;
  case ItemKind::kAxis:
    for (const AxisItem::Axis &axis : as<AxisItem>(item).axes)
      readAxis(axis);
    return;
  case ItemKind::kTensor:
    for (const TensorItem::Declaration &tensor : as<TensorItem>(item).tensors)
      readTensor(tensor);
    return;
  case ItemKind::kScalar:
    for (const Field &field : as<ScalarItem>(item).scalars) {
      // Libraries and the kernel may need the same number of the call.
      if (scalars.contains(field.name.text) || !declare(field.name))
        continue;
      const std::optional<Element> type = element(field.type->element.text);
      if (!type || field.type->hasAxes || (*type != Element::kI32 && *type != Element::kF32)) {
        diagnostics.error(field.type->range, "a scalar of the call is i32 or f32");
        continue;
      }
      ScalarArgument &scalar = program.scalars.emplace_back();
      scalar = {field.name.text, field.name.range, *type, field.name.range.file == kernel->range.file};
      scalars.emplace(field.name.text, &scalar);
    }
    return;
  case ItemKind::kRecord:
    return readRecord(as<RecordItem>(item));
  case ItemKind::kFunction:
    return readFunction(as<FunctionItem>(item));
  case ItemKind::kGrid:
    grid = &as<GridItem>(item);
    return;
  case ItemKind::kThreads:
    if (const std::optional<int64_t> threads = integer(as<ThreadsItem>(item).value)) {
      if (*threads < 32 || *threads > 1024 || *threads % 32 != 0)
        diagnostics.error(as<ThreadsItem>(item).value->range,
                          "a program has whole warps of 32 threads, at most 1024; this is " + std::to_string(*threads));
      program.warps = *threads / 32;
    }
    return;
  case ItemKind::kStatement:
    body.push_back(as<StatementItem>(item).statement);
    return;
  case ItemKind::kKernel:
  case ItemKind::kLibrary:
  case ItemKind::kImport:
  case ItemKind::kTargets:
  case ItemKind::kReference:
  case ItemKind::kRequire: // has decided before, and so has the cost
  case ItemKind::kCost:
  case ItemKind::kWork: // is for the caller
    return;
  }
}

void Declarations::readFixed(const FixedItem &item) {
  const std::optional<int64_t> needed = item.when ? integer(item.when) : 1;
  for (const Name &name : item.names) {
    // The kernel and its libraries may name the same value of the problem.
    if (fixed.contains(name.text))
      continue;
    fixed.insert(name.text);
    const auto found = given.find(name.text);
    if (needed && !*needed)
      bind(name, Constant::ofInteger(0));
    else
      bind(name, found == given.end() ? std::nullopt : std::optional(givenConstant(found->second)));
  }
}

void Declarations::readConstants(BindingList bindings) {
  for (const Binding &binding : bindings)
    bind(binding.name,
         evaluateConstant(binding.value, [this](std::string_view name) { return constant(name); }, diagnostics));
}

void Declarations::bind(const Name &name, std::optional<Constant> value) {
  if (declare(name))
    constants.emplace(name.text, value);
}

bool Declarations::declare(const Name &name) {
  if (isBuiltInWord(name.text)) {
    diagnostics.error(name.range, quoted(name.text) + " is a word of the language, and cannot be declared");
    return false;
  }
  const auto [place, isNew] = places.emplace(name.text, name.range);
  if (isNew)
    return true;
  diagnostics.error(name.range, quoted(name.text) + " is declared twice").note(place->second, "first here");
  return false;
}

// A function is told from a value by its call, so that both may have one name.
void Declarations::readFunction(const FunctionItem &item) {
  const auto [before, isNew] = functions.emplace(item.name.text, &item);
  if (!isNew)
    diagnostics.error(item.name.range, "function " + quoted(item.name.text) + " is declared twice")
        .note(before->second->name.range, "first here");
  else if (isBuiltInFunction(item.name.text) || records.contains(item.name.text))
    diagnostics.error(item.name.range, quoted(item.name.text) + " is a function already");
}

void Declarations::readAxis(const AxisItem::Axis &declared) {
  const std::string name(declared.name.text);
  Diagnostics scratch;
  const std::optional<Constant> extent =
      evaluateConstant(declared.extent, [this](std::string_view text) { return constant(text); }, scratch);
  if (const auto first = axes.find(declared.name.text); first != axes.end()) {
    Diagnostic &message = diagnostics.error(declared.name.range, "axis '" + name + "' is declared twice");
    message.note(first->second->range, "first here, as " + std::to_string(first->second->count));
    if (extent && extent->integer != first->second->count)
      message.hint("'" + name + "' cannot be " + std::to_string(first->second->count) + " and " +
                   std::to_string(extent->integer));
    return;
  }
  if (!declare(declared.name))
    return;
  if (!extent) {
    const NameExpr *scalar = findName(declared.extent, [&](std::string_view text) {
      if (constants.contains(text))
        return false;
      for (const ScalarArgument &argument : program.scalars)
        if (argument.name == text)
          return true;
      return !constant(text);
    });
    Diagnostic &message = diagnostics.error(declared.extent->range, "extent of '" + name + "' is no constant");
    if (scalar) {
      message.text += ": it depends on the call ('" + std::string(scalar->text) + "')";
      message.hint("an axis is compiled in; take a choice and walk with 'for .. by " + name + "'");
    } else if (!scratch.list().empty()) {
      message.note(scratch.list().front().range, scratch.list().front().text);
    }
    return;
  }
  if (extent->kind == Constant::Kind::kWord || extent->integer < 1 || extent->integer > kMostExtent) {
    diagnostics.error(declared.extent->range, "extent of '" + name + "' is " + toString(*extent) + ", must be 1 to " +
                                                  std::to_string(kMostExtent));
    return;
  }
  if (program.axes.size() == kMostAxes) {
    diagnostics.error(declared.name.range, "a program has at most " + std::to_string(kMostAxes) + " axes");
    return;
  }
  int64_t places = declared.isOuter ? extent->integer : 1;
  for (const Axis &axis : program.axes)
    places *= axis.isOuter ? axis.count : 1;
  if (places > kMostPlaces) {
    diagnostics.error(declared.extent->range, "outer axes have at most " + std::to_string(kMostPlaces) +
                                                  " places together, with '" + name + "' they have " +
                                                  std::to_string(places));
    return;
  }
  Axis &axis = program.axes.emplace_back();
  axis = {declared.name.text, declared.name.range, extent->integer,
          extent->integer,    declared.isOuter,    static_cast<uint8_t>(program.axes.size() - 1)};
  axes.emplace(axis.name, &axis);
}

void Declarations::readTensor(const TensorItem::Declaration &declared) {
  for (const Name &name : declared.names) {
    if (!declare(name))
      continue;
    Tensor tensor;
    tensor.name = name.text;
    tensor.range = name.range;
    tensor.coordinates = declared.coordinates;
    tensor.isOptional = declared.isOptional;
    tensor.isInout = declared.isInout;
    tensor.isUsed = name.range.file == kernel->range.file;
    if (!declared.element.isEmpty()) {
      tensor.record = record(declared.element.text);
      const std::optional<Element> element = tensor.record ? std::optional(Element::kI32)
                                             : declared.element.text == kGradient
                                                 ? std::optional(Element::kGradient)
                                                 : this->element(declared.element.text);
      if (!element) {
        diagnostics.error(declared.element.range, "unknown element type " + quoted(declared.element.text))
            .hint(hintOfElement(declared.element.text));
        continue;
      }
      tensor.element = *element;
    }
    if (!checkRows(tensor, declared))
      continue;
    if (!declared.column.isEmpty()) {
      tensor.hasColumns = true;
      tensor.columnName = declared.column.text;
      if (declared.columns) {
        const std::optional<int64_t> columns = integer(declared.columns);
        if (!columns)
          continue;
        if (*columns < 1 || *columns > kMostColumns) {
          diagnostics.error(declared.columns->range, "rows of " + quoted(name.text) + " have " +
                                                         std::to_string(*columns) + " columns, must be 1 to " +
                                                         std::to_string(kMostColumns));
          continue;
        }
        tensor.columns = *columns;
      } else {
        const auto own = axes.find(declared.column.text);
        if (own == axes.end()) {
          diagnostics.error(declared.column.range, "unknown axis " + quoted(declared.column.text))
              .hint("rows that are walked in parts say how many columns they have: [..; " +
                    std::string(declared.column.text) + ": n]");
          continue;
        }
        tensor.columnAxis = own->second;
        tensor.columns = own->second->count;
      }
    }
    if (declared.pageSize) {
      const std::optional<int64_t> rows = integer(declared.pageSize);
      if (!rows)
        continue;
      if (*rows < 0 || *rows > kMostColumns || (*rows > 0 && tensor.rank() < 2)) {
        Diagnostic &message =
            diagnostics.error(declared.pageSize->range, "a page of " + std::to_string(*rows) + " rows");
        message.hint("0 for no pages, or up to " + std::to_string(kMostColumns) +
                     " rows, of a tensor with the coordinates of a sequence and of a row in it");
        continue;
      }
      if (*rows > 0 && tensor.element == Element::kGradient) {
        diagnostics.error(declared.pageSize->range, "the gradient " + quoted(name.text) + " has no pages");
        continue;
      }
      tensor.pageRows = *rows;
    }
    tensors.emplace(name.text, &program.tensors.emplace_back(tensor));
  }
}

// What memory can hold, and how many coordinates an access has.
bool Declarations::checkRows(const Tensor &tensor, const TensorItem::Declaration &declared) {
  if (tensor.record) {
    for (const Record::Member &member : tensor.record->members)
      if (member.element != Element::kI32) {
        diagnostics.error(declared.element.range, "records in memory have fields of i32, and " + quoted(member.name) +
                                                      " of " + quoted(tensor.record->name) + " is " +
                                                      std::string(nameOf(member.element)));
        return false;
      }
  } else if (tensor.element != Element::kI32 && tensor.element != Element::kF32 && !isStorage(tensor.element)) {
    diagnostics.error(declared.element.range, "a tensor holds io, f32, i32, bf16, fp16, gradients or records, and no " +
                                                  std::string(nameOf(tensor.element)));
    return false;
  }
  if (tensor.coordinates.empty() || tensor.rank() > kMostCoordinates) {
    diagnostics.error(tensor.range, "a tensor has 1 to " + std::to_string(kMostCoordinates - (tensor.record ? 1 : 0)) +
                                        " coordinates, this one has " + std::to_string(tensor.coordinates.size()));
    return false;
  }
  return true;
}

void Declarations::readRecord(const RecordItem &item) {
  if (!declare(item.name))
    return;
  Record &record = program.records.emplace_back();
  record.name = item.name.text;
  record.range = item.name.range;
  for (const Field &field : item.fields) {
    const std::optional<Element> type = element(field.type->element.text);
    if (!type || field.type->hasAxes)
      diagnostics.error(field.type->range, "a field is a number or a bool");
    else
      record.members.push_back({field.name.text, *type});
  }
  records.emplace(record.name, &record);
}

// A whole row of a tensor is as wide as a tile has to be, so that products can use all of it.
void Declarations::padAxes() {
  const std::optional<Constant> step = constant("dot_step");
  if (!step || step->integer < 2)
    return;
  for (const Tensor &tensor : program.tensors)
    if (tensor.columnAxis) {
      Axis &axis = program.axes[tensor.columnAxis->number];
      axis.extent = (axis.count + step->integer - 1) / step->integer * step->integer;
    }
}

std::optional<Constant> Declarations::constant(std::string_view name) const {
  if (const auto found = constants.find(name); found != constants.end())
    return found->second;
  if (const auto found = given.find(name); found != given.end() && !fixed.contains(name))
    return givenConstant(found->second);
  int64_t number = 0;
  if (wordsOfKernel.contains(name) || lookupEnumerator(name, number))
    return Constant::ofWord(name);
  return std::nullopt;
}

std::optional<int64_t> Declarations::integer(const Expr *expr) const {
  const std::optional<Constant> value =
      evaluateConstant(expr, [this](std::string_view name) { return constant(name); }, diagnostics);
  return value ? std::optional(value->integer) : std::nullopt;
}

const SourceRange *Declarations::placeOf(std::string_view name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &found->second;
}

std::optional<Element> Declarations::element(std::string_view name) const {
  const auto known = [](std::string_view text) -> std::optional<Element> {
    const auto *found = std::ranges::find(kElements, text, &std::pair<std::string_view, Element>::first);
    return found == std::end(kElements) ? std::nullopt : std::optional(found->second);
  };
  if (const std::optional<Constant> value = constant(name); value && value->kind == Constant::Kind::kWord)
    return known(value->word);
  return known(name);
}

std::vector<std::string_view> Declarations::names() const {
  std::vector<std::string_view> result;
  for (const auto &[name, place] : places)
    result.push_back(name);
  std::ranges::sort(result);
  return result;
}

std::vector<std::string_view> Declarations::callees() const {
  std::vector<std::string_view> result;
  for (const auto &[name, record] : records)
    result.push_back(name);
  for (const auto &[name, function] : functions)
    result.push_back(name);
  std::ranges::sort(result);
  return result;
}

} // namespace nsa::language
