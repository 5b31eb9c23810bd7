// ProgramInterface::make: from the declarations of a program to its interface.
#include "compiler/language/syntax/FindName.h"
#include "runtime/base/text.h"
#include "runtime/program/parsed_program.h"
#include "runtime/program/program_interface.h"

#include <bit>
#include <charconv>
#include <set>

namespace nsa {

namespace {

using namespace language;

constexpr std::string_view kIo = "io", kDTypeValue = "dtype", kDTypeBytes = "dtype_bytes";
constexpr int kMostConstants = 256; // deep, of constants that are made of constants

std::string inQuotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// How a caller gives a value.
std::string settingHint(std::string_view name) {
  return "add it to the values, or to the command line as --set " + std::string(name) +
         (name == kDTypeValue ? "=bf16, fp16 or fp32" : "=NUMBER");
}

// Calls `visit` with each statement, and with each statement inside of it.
void forEachStatement(std::span<const Statement *const> statements,
                      const std::function<void(const Statement &)> &visit) {
  for (const Statement *statement : statements) {
    visit(*statement);
    if (const auto *branch = asIf<IfStatement>(statement)) {
      forEachStatement(branch->then.statements, visit);
      if (branch->otherwise)
        forEachStatement(branch->otherwise->statements, visit);
    } else if (const auto *loop = asIf<ForStatement>(statement)) {
      forEachStatement(loop->body.statements, visit);
    } else if (const auto *places = asIf<ForAxisStatement>(statement)) {
      forEachStatement(places->body.statements, visit);
    }
  }
}

// The text behind the `//` of a line; nullopt: the line is no comment.
std::optional<std::string_view> commentLine(std::string_view line) {
  const std::string_view text = trim(line);
  return text.starts_with("//") ? std::optional(trim(text.substr(2))) : std::nullopt;
}

// The comment of a declaration: behind it in its last line, or else in the lines right above it.
std::string commentOf(const SourceRange &declaration) {
  const SourceFile &file = *declaration.file;
  const uint32_t first = declaration.position().line, last = file.position(declaration.end).line;
  const std::string_view rest = file.line(last).substr(declaration.end - file.lineBegin(last));
  if (const std::optional<std::string_view> behind = commentLine(rest))
    return std::string(*behind);
  std::string text;
  for (uint32_t line = first; line-- > 1;) {
    const std::optional<std::string_view> above = commentLine(file.line(line));
    if (!above)
      break;
    text = std::string(*above) + (text.empty() ? "" : " " + text);
  }
  return text;
}

} // namespace

class InterfaceReader {
public:
  enum class Unknown { kRefused, kIgnored };
  InterfaceReader(const ParsedProgram &program, const ProgramValues &values, ProgramInterface::Sizes sizes,
                  Unknown unknown)
      : program(program), values(values), sizes(sizes), unknown(unknown) {}

  Result<std::shared_ptr<const ProgramInterface>> run() {
    result->kernel = std::string(program.kernel().name.text);
    result->file = program.kernel().range.file->name();
    collect();
    followAliases();
    NSA_RETURN_IF_ERROR(readScalars());
    NSA_RETURN_IF_ERROR(readFixed());
    NSA_RETURN_IF_ERROR(checkValues());
    NSA_RETURN_IF_ERROR(readTensors());
    NSA_RETURN_IF_ERROR(readCodes());
    NSA_RETURN_IF_ERROR(readGrid());
    NSA_RETURN_IF_ERROR(readWork());
    NSA_RETURN_IF_ERROR(checkSizes());
    return std::shared_ptr<const ProgramInterface>(std::move(result));
  }

private:
  void collect() {
    for (const SyntaxTree *tree : program.trees())
      for (const Item *item : tree->items) {
        if (const auto *fixed = asIf<FixedItem>(item))
          fixedItems.push_back(fixed);
        else if (const auto *constant = asIf<ConstItem>(item))
          for (const language::Binding &binding : constant->bindings)
            constants.emplace(binding.name.text, binding.value);
        else if (const auto *axis = asIf<AxisItem>(item))
          for (const AxisItem::Axis &each : axis->axes)
            axes.emplace(each.name.text, each.extent);
        else if (const auto *record = asIf<RecordItem>(item))
          records.emplace(record->name.text, record->fields.size());
        else if (const auto *statement = asIf<StatementItem>(item))
          findStores({&statement->statement, 1});
      }
  }

  void findStores(std::span<const Statement *const> statements) {
    forEachStatement(statements, [&](const Statement &statement) {
      if (const auto *store = asIf<StoreStatement>(&statement))
        stored.insert(std::string(store->place.tensor.text));
      if (const auto *let = asIf<LetStatement>(&statement))
        for (const LetStatement::Binding &binding : let->bindings)
          for (const Name &name : binding.target.names)
            aliases.emplace_back(name.text, binding.value);
    });
  }

  Status readScalars() {
    for (const SyntaxTree *tree : program.trees())
      for (const Item *item : tree->items)
        if (const auto *declared = asIf<ScalarItem>(item))
          for (const Field &field : declared->scalars) {
            if (result->findScalar(field.name.text) >= 0)
              continue; // the compiler says so
            const bool isReal = field.type->element.text == "f32" || field.type->element.isEmpty();
            if (!isReal && field.type->element.text != "i32")
              return Status::invalid("scalar " + std::string(field.name.text), std::string(field.type->element.text),
                                     "must be i32 or f32");
            result->scalarList.push_back({std::string(field.name.text), isReal ? ScalarType::kF32 : ScalarType::kI32});
          }
    if (result->scalarList.size() > ProgramInterface::kMostScalars)
      return Status::invalid("scalar", std::to_string(result->scalarList.size()) + " scalars",
                             "a program has at most " + std::to_string(ProgramInterface::kMostScalars));
    return Status::ok();
  }

  Status readFixed() {
    // The others may have conditions on the element type.
    if (const auto dtype = values.find(std::string(kDTypeValue)); dtype != values.end()) {
      NSA_ASSIGN_OR_RETURN(result->ioType, parseIoDType(dtype->second));
      result->fixedValues.insert(*dtype);
    }
    for (const FixedItem *item : fixedItems)
      for (const Name &name : item->names)
        NSA_RETURN_IF_ERROR(readFixed(name, item->when));
    return Status::ok();
  }

  Status readFixed(const Name &name, const Expr *when) {
    const std::string text(name.text);
    if (result->findScalar(text) >= 0)
      return Status::invalid("fixed " + text, "fixed and a scalar", "a name has one declaration",
                             "a fixed value is compiled in, and a scalar is passed by each call");
    fixedNames.insert(text);
    const auto given = values.find(text);
    if (when) {
      NSA_ASSIGN_OR_RETURN(const ProgramSize condition, size(*when, "fixed " + text));
      NSA_ASSIGN_OR_RETURN(const int64_t holds, condition.evaluate({}));
      if (!holds) {
        absent.insert(text);
        return given == values.end()
                   ? Status::ok()
                   : Status::invalid(text, given->second,
                                     "has no value where 'when " + inOneLine(when->range) + "' does not hold");
      }
    }
    if (given == values.end())
      return Status::invalid(text, "nothing", "the program " + result->kernel + " needs a value for " + inQuotes(text),
                             "it declares 'fixed " + text + "'; " + settingHint(text));
    int64_t number = 0;
    if (!parseInteger(given->second, number) && !lookupEnumerator(given->second, number))
      return Status::invalid(text, inQuotes(given->second), "must be an integer, or a word such as bf16");
    result->fixedValues.insert(*given);
    return Status::ok();
  }

  Status checkValues() {
    for (const auto &[name, text] : values) {
      if (fixedNames.contains(name) || name == kDTypeValue)
        continue;
      const int place = result->findScalar(name);
      if (place < 0 && unknown == Unknown::kIgnored)
        continue;
      if (place < 0)
        return unknownValue(name, text);
      ProgramScalar &scalar = result->scalarList[static_cast<size_t>(place)];
      if (scalar.type == ScalarType::kF32) {
        float value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
          return Status::invalid(name, inQuotes(text), "must be a number, because the scalar is f32");
        scalar.given = std::bit_cast<uint32_t>(value);
      } else {
        int32_t value = 0;
        if (!parseInteger(text, value))
          return Status::invalid(name, inQuotes(text), "must be an integer of 32 bits, because the scalar is i32");
        scalar.given = static_cast<uint32_t>(value);
      }
    }
    return Status::ok();
  }

  Status unknownValue(const std::string &name, const std::string &text) const {
    if (program.choices().contains(name))
      return Status::invalid(name, text, "is a choice of the program " + result->kernel + ", and no value of its calls",
                             "tuning makes the choice; nsa compile takes choices, too");
    std::vector<std::string_view> known(fixedNames.begin(), fixedNames.end());
    for (const ProgramScalar &scalar : result->scalarList)
      known.push_back(scalar.name);
    return Status::invalid(name, text,
                           "the program " + result->kernel + " declares no such fixed value and no such scalar",
                           nameHint(name, known));
  }

  Status readTensors() {
    for (const SyntaxTree *tree : program.trees())
      for (const Item *item : tree->items)
        if (const auto *declared = asIf<TensorItem>(item))
          for (const TensorItem::Declaration &tensor : declared->tensors)
            for (const Name &name : tensor.names)
              NSA_RETURN_IF_ERROR(readTensor(name, tensor));
    if (result->tensorList.size() > static_cast<size_t>(ProgramInterface::kMostTensors))
      return Status::invalid("tensor", std::to_string(result->tensorList.size()) + " tensors",
                             "a program has at most " + std::to_string(ProgramInterface::kMostTensors));
    for (ProgramTensor &tensor : result->tensorList)
      tensor.isStored = isStored(tensor.name);
    return Status::ok();
  }

  Status readTensor(const Name &name, const TensorItem::Declaration &declared) {
    if (name.text == ProgramInterface::kStatusTensor || result->findTensor(name.text) >= 0)
      return Status::ok();
    ProgramTensor tensor;
    tensor.name = std::string(name.text);
    tensor.isOptional = declared.isOptional;
    tensor.isInout = declared.isInout;
    const std::string what = "tensor " + tensor.name;
    if (declared.element.text == "gradient")
      return Status::invalid(what, "gradient", "a program of one's own has no gradients, whose type each call says",
                             "declare the type of the elements: f32, or nothing for the call's element type");
    if (declared.pageSize)
      return Status::invalid(what, "paged", "a program of one's own has no tensors in pages",
                             "address the pages by a table of i32");
    for (size_t i = 0; i < declared.coordinates.size(); ++i) {
      ProgramTensor::Dimension dimension{std::string(declared.coordinates[i].text), {}};
      if (i < declared.extents.size() && declared.extents[i]) {
        NSA_ASSIGN_OR_RETURN(dimension.extent, size(*declared.extents[i], what));
      }
      tensor.dimensions.push_back(std::move(dimension));
    }
    tensor.coordinates = static_cast<int>(tensor.dimensions.size());
    const auto record = records.find(declared.element.text);
    if (record != records.end()) {
      NSA_ASSIGN_OR_RETURN(Expression fields, Expression::parse(std::to_string(record->second)));
      NSA_ASSIGN_OR_RETURN(ProgramSize extent, size(std::move(fields), what));
      tensor.dimensions.push_back({"field", std::move(extent)});
      ++tensor.coordinates;
      tensor.dtype = DType::kI32;
    } else {
      NSA_ASSIGN_OR_RETURN(tensor.dtype, elementOf(declared.element.text, what));
    }
    if (!declared.column.isEmpty()) {
      const Expr *columns = declared.columns;
      if (const auto axis = axes.find(declared.column.text); !columns && axis != axes.end())
        columns = axis->second;
      if (!columns)
        return Status::invalid(what, std::string(declared.column.text), "is no axis of the program");
      NSA_ASSIGN_OR_RETURN(ProgramSize extent, size(*columns, what));
      tensor.dimensions.push_back({std::string(declared.column.text), std::move(extent)});
    }
    result->tensorList.push_back(std::move(tensor));
    return Status::ok();
  }

  Result<DType> elementOf(std::string_view element, const std::string &what) {
    if (element.empty() || element == kIo) {
      if (!result->fixedValues.contains(std::string(kDTypeValue)))
        return Status::invalid(std::string(kDTypeValue), "nothing",
                               "the program " + result->kernel + " needs a value for 'dtype'",
                               what + " is of the call's element type; " + settingHint(kDTypeValue));
      return result->ioType;
    }
    if (element == "i32")
      return DType::kI32;
    if (element == "f32")
      return DType::kF32;
    const auto fixed = result->fixedValues.find(std::string(element));
    const std::string_view name = fixed == result->fixedValues.end() ? element : std::string_view(fixed->second);
    if (const Result<DType> dtype = parseDType(name))
      return *dtype;
    return Status::invalid(what, inQuotes(name), "must have elements of io, f32, i32, bf16, fp16, or of a record");
  }

  // A store to a chosen tensor, or to one that is picked from a stack, is a store to all that it may be.
  bool isStored(const std::string &name) const { return stored.contains(name); }

  // Adds the names of which the values of stored names are made, until none is new.
  void followAliases() {
    for (size_t before = 0; before != stored.size();) {
      before = stored.size();
      for (const auto &[alias, value] : aliases)
        if (stored.contains(std::string(alias)))
          language::findName(value, [&](std::string_view name) {
            stored.emplace(name);
            return false;
          });
    }
  }

  Status readCodes() {
    for (const SyntaxTree *tree : program.trees())
      for (const Item *item : tree->items)
        if (const auto *declared = asIf<CodeItem>(item))
          for (const language::Binding &binding : declared->bindings)
            NSA_RETURN_IF_ERROR(readCode(binding, commentOf(declared->range)));
    return Status::ok();
  }

  Status readCode(const language::Binding &binding, std::string meaning) {
    const std::string name(binding.name.text), what = "code " + name;
    NSA_ASSIGN_OR_RETURN(const ProgramSize number, size(*binding.value, what));
    if (!number.isKnown({}))
      return Status::invalid(what, number.text(), "must be a constant");
    NSA_ASSIGN_OR_RETURN(const int64_t value, number.evaluate({}));
    if (value == 0 || value != static_cast<int32_t>(value))
      return Status::invalid(what, std::to_string(value), "must be an integer of 32 bits that is not 0",
                             "0 says that nothing was reported");
    for (const ProgramCode &other : result->codeList)
      if (other.number == value)
        return Status::invalid(what, std::to_string(value), "is the number of the code " + inQuotes(other.name),
                               "reports are told apart by their numbers");
    const SourceRange &at = binding.name.range;
    result->codeList.push_back({name, static_cast<int32_t>(value),
                                at.file->name() + ":" + std::to_string(at.position().line), std::move(meaning)});
    return Status::ok();
  }

  Status readGrid() {
    for (const Item *item : program.trees().front()->items)
      if (const auto *grid = asIf<GridItem>(item))
        for (const GridItem::Dimension &dimension : grid->dimensions)
          for (const language::Binding &part : dimension.parts)
            NSA_RETURN_IF_ERROR(readGrid(*part.value));
    return Status::ok();
  }

  // A grid may be made of choices too, which no caller knows.
  Status readGrid(const Expr &part) {
    NSA_ASSIGN_OR_RETURN(const Expression formula, Expression::parse(inOneLine(part.range)));
    for (const std::string &name : formula.names())
      if (const int place = result->findScalar(name); place >= 0)
        result->sizes |= uint64_t{1} << place;
    return Status::ok();
  }

  Status readWork() {
    for (const Item *item : program.trees().front()->items)
      if (const auto *work = asIf<WorkItem>(item))
        for (const language::Binding &part : work->bindings) {
          ProgramInterface::Work &declared = result->declaredWork;
          NSA_ASSIGN_OR_RETURN((part.name.text == kWorkFlops ? declared.flops : declared.bytes),
                               size(*part.value, "work " + std::string(part.name.text)));
        }
    return Status::ok();
  }

  // What a kernel is chosen for.
  Status checkSizes() {
    for (const ProgramTensor &tensor : result->tensorList)
      for (const ProgramTensor::Dimension &dimension : tensor.dimensions)
        if (dimension.extent)
          dimension.extent->forEachScalar([&](int place) { result->sizes |= uint64_t{1} << place; });
    for (size_t i = 0; i < result->scalarList.size(); ++i) {
      const ProgramScalar &scalar = result->scalarList[i];
      if (!result->isSize(static_cast<int>(i)))
        continue;
      if (!scalar.given && sizes == ProgramInterface::Sizes::kOpen)
        continue;
      if (!scalar.given)
        return Status::invalid(scalar.name, "nothing",
                               "the program " + result->kernel + " needs the greatest " + inQuotes(scalar.name) +
                                   " of its calls, which chooses the kernel",
                               "its grid or its tensors are made of it; " + settingHint(scalar.name));
      if (static_cast<int32_t>(*scalar.given) < 0)
        return Status::invalid(scalar.name, std::to_string(static_cast<int32_t>(*scalar.given)), "must be at least 0");
    }
    return Status::ok();
  }

  Result<ProgramSize> size(const Expr &expr, const std::string &what) {
    NSA_ASSIGN_OR_RETURN(Expression formula, Expression::parse(inOneLine(expr.range)));
    return size(std::move(formula), what);
  }

  Result<ProgramSize> size(Expression formula, const std::string &what) {
    Result<ProgramSize> made = ProgramSize::make(
        std::move(formula), [&](const std::string &name) { return constant(name, 0); },
        [&](const std::string &name) {
          const int place = result->findScalar(name);
          return place >= 0 && result->scalarList[static_cast<size_t>(place)].type == ScalarType::kI32 ? place : -1;
        });
    if (made)
      return made;
    ErrorInfo info = made.status().error();
    info.field = what;
    return Status(std::move(info));
  }

  // The value of a name that a caller's values alone say; nullopt: it is none of these.
  std::optional<int64_t> constant(const std::string &name, int depth) const {
    int64_t number = 0;
    if (const auto fixed = result->fixedValues.find(name); fixed != result->fixedValues.end())
      return parseInteger(fixed->second, number) || lookupEnumerator(fixed->second, number) ? std::optional(number)
                                                                                            : std::nullopt;
    if (absent.contains(name))
      return 0;
    if (name == kDTypeBytes)
      return dtypeBytes(result->ioType);
    if (const auto found = constants.find(name); found != constants.end() && depth < kMostConstants) {
      const Result<Expression> formula = Expression::parse(inOneLine(found->second->range));
      if (!formula)
        return std::nullopt;
      const Result<int64_t> value = formula->evaluate([&](std::string_view part, int64_t &result) {
        const std::optional<int64_t> known = constant(std::string(part), depth + 1);
        result = known.value_or(0);
        return known.has_value();
      });
      return value ? std::optional(*value) : std::nullopt;
    }
    return lookupEnumerator(name, number) ? std::optional(number) : std::nullopt;
  }

  const ParsedProgram &program;
  const ProgramValues &values;
  const ProgramInterface::Sizes sizes;
  const Unknown unknown; // values
  std::shared_ptr<ProgramInterface> result{new ProgramInterface};
  std::vector<const FixedItem *> fixedItems;
  std::map<std::string_view, const Expr *, std::less<>> constants, axes;
  std::vector<std::pair<std::string_view, const Expr *>> aliases; // names and their values
  std::map<std::string_view, size_t, std::less<>> records;        // their fields
  std::set<std::string> fixedNames, absent, stored;
};

namespace {

std::string textOf(const ProgramScalar &scalar) {
  const double value = scalar.valueOf(*scalar.given);
  if (scalar.type == ScalarType::kI32)
    return std::to_string(static_cast<int32_t>(value));
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), static_cast<float>(value)).ptr};
}

} // namespace

Result<std::shared_ptr<const ProgramInterface>> ProgramInterface::make(const ProgramSource &source,
                                                                       const ProgramValues &values, Sizes sizes) {
  return InterfaceReader(*source.parsed, values, sizes, InterfaceReader::Unknown::kRefused).run();
}

Result<std::shared_ptr<const ProgramInterface>> ProgramInterface::ofReference(const ProgramSource &reference) const {
  ProgramValues values = fixedValues;
  for (const ProgramScalar &scalar : scalarList)
    if (scalar.given)
      values.emplace(scalar.name, textOf(scalar));
  NSA_ASSIGN_OR_RETURN(
      std::shared_ptr<const ProgramInterface> result,
      InterfaceReader(*reference.parsed, values, Sizes::kGiven, InterfaceReader::Unknown::kIgnored).run());
  for (const ProgramTensor &tensor : tensorList) {
    const int place = result->findTensor(tensor.name);
    if (place >= 0 && result->tensors()[static_cast<size_t>(place)].isStored != tensor.isStored)
      return Status::invalid("reference " + reference.kernel, "tensor " + tensor.name,
                             tensor.isStored
                                 ? "must be stored to, because the program " + kernel + " stores to it"
                                 : "must not be stored to, because the program " + kernel + " does not store to it");
  }
  return result;
}

} // namespace nsa
