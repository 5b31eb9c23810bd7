#include "compiler/check/KernelNames.h"

#include "compiler/language/syntax/Lexer.h"
#include "compiler/language/syntax/Suggestion.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <array>

namespace nsa {

namespace {

using language::Diagnostics;
using language::Name;
using language::quoted;
using language::SyntaxTree;
using language::Token;
using language::TokenKind;

// What was meant, or else what there is.
std::string hintOf(std::string_view name, const std::string &title, std::span<const std::string_view> known) {
  const std::string_view nearest = language::nearestWord(name, known);
  return nearest.empty() ? title + joined(known) : "did you mean " + quoted(nearest) + "?";
}

std::vector<const OperatorDef *> operatorsOf(const SyntaxTree &kernel) {
  std::vector<const OperatorDef *> operators;
  for (const Name &name : kernel.kernel->operators)
    if (const OperatorDef *def = findOperator(name.text))
      operators.push_back(def);
  return operators;
}

void checkTensor(const Name &name, const language::TensorItem::Declaration &declared, bool isRecord,
                 std::span<const OperatorDef *const> operators, Diagnostics &diagnostics) {
  int number = 0;
  while (number < kViews && viewRule(static_cast<View>(number)).name != name.text)
    ++number;
  for (const OperatorDef *def : operators)
    if (number == kViews || !def->mayTake(static_cast<View>(number))) {
      diagnostics.error(name.range, "the operator " + quoted(def->name) + " has no tensor " + quoted(name.text))
          .hint(hintOf(name.text, "its tensors are ", def->viewNames()));
      return;
    }
  const ViewRule &rule = viewRule(static_cast<View>(number));
  const size_t rank = declared.coordinates.size() + (isRecord ? 1 : 0);
  if (rank != static_cast<size_t>(rule.rank))
    diagnostics.error(name.range, "a row of the tensor " + quoted(name.text) + " has " + std::to_string(rule.rank) +
                                      " coordinates, and not " + std::to_string(rank));
  // A name of a fixed value is an element type of the problem.
  const std::string_view element = declared.element.isEmpty() ? "io" : declared.element.text;
  const bool isPlain = element == "io" || element == "i32" || element == "f32" || element == "gradient" || isRecord;
  const std::string_view wanted = rule.elements == ViewElements::kIndex        ? "i32"
                                  : rule.elements == ViewElements::kStatistics ? "f32"
                                  : rule.elements == ViewElements::kGradient   ? "gradient"
                                                                               : "io";
  if (isPlain && (isRecord ? "i32" : element) != wanted)
    diagnostics.error(declared.element.isEmpty() ? name.range : declared.element.range,
                      "the tensor " + quoted(name.text) + " is of " + std::string(wanted) + ", and not of " +
                          std::string(element));
}

void checkScalar(const language::Field &field, Diagnostics &diagnostics) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kScalars; ++i) {
    const ScalarRule &rule = scalarRule(static_cast<Scalar>(i));
    names.push_back(rule.name);
    if (rule.name != field.name.text)
      continue;
    const std::string_view wanted = rule.type == ScalarType::kF32 ? "f32" : "i32";
    if (const std::string_view type = field.type->element.text; type != wanted)
      diagnostics.error(field.type->range, "the number " + quoted(rule.name) + " is " + std::string(wanted) +
                                               ", and not " + std::string(type));
    return;
  }
  diagnostics.error(field.name.range, "no operator has a number " + quoted(field.name.text))
      .hint(hintOf(field.name.text, "the numbers of operators are ", names));
}

// All that may stand in the place of these words; empty: they are no words of a problem.
std::vector<std::string_view> kindOf(std::span<const std::string_view> words) {
  std::vector<std::string_view> all;
  for (const Names kind :
       {Names(kDTypeNames), Names(kCmpKindNames), Names(kActivationNames), Names(kGateNames), Names(kRotaryStyleNames)})
    if (std::ranges::any_of(words, [&](std::string_view word) { return std::ranges::find(kind, word) != kind.end(); }))
      all.insert(all.end(), kind.begin(), kind.end());
  return all;
}

// The words with which the files compare a name. Where the name is an element type, it stands behind
// a tensor's coordinates or behind `as`.
std::vector<std::string_view> comparedWith(std::string_view name, std::span<const SyntaxTree *const> files) {
  std::vector<std::string_view> words;
  for (const SyntaxTree *tree : files) {
    Diagnostics ignored;
    language::Lexer lexer(*tree->source, ignored);
    std::array<Token, 3> last;
    const auto text = [&](const Token &token) {
      return tree->source->text().substr(token.begin, token.end - token.begin);
    };
    do {
      last = {last[1], last[2], lexer.next()};
      const TokenKind before = last[1].kind;
      const bool isName = last[2].kind == TokenKind::kName && text(last[2]) == name;
      const bool isOfTensor = before == TokenKind::kColon && last[0].kind == TokenKind::kCloseBracket;
      if (isName && (isOfTensor || before == TokenKind::kAs))
        words.push_back(dtypeName(DType::kBf16));
      if ((before != TokenKind::kEqual && before != TokenKind::kUnequal) || last[0].kind != TokenKind::kName ||
          last[2].kind != TokenKind::kName)
        continue;
      if (isName)
        words.push_back(text(last[0]));
      else if (text(last[0]) == name)
        words.push_back(text(last[2]));
    } while (last[2].kind != TokenKind::kEnd);
  }
  return words;
}

Status checkValue(const std::string &name, const std::string &text, std::span<const SyntaxTree *const> files) {
  if (name == "dtype")
    return parseIoDType(text).status();
  if (isProblemValue(name))
    return checkProblemValue(name, text);
  const std::vector<std::string_view> words = kindOf(comparedWith(name, files));
  if (int64_t number = 0; words.empty())
    return parseInteger(text, number) ? Status::ok() : Status::invalid(name, text, "must be an integer");
  return std::ranges::find(words, text) != words.end() ? Status::ok()
                                                       : Status::invalid(name, text, "must be one of " + joined(words));
}

} // namespace

void checkArguments(const SyntaxTree &kernel, std::span<const SyntaxTree *const> files, Diagnostics &diagnostics) {
  const std::vector<const OperatorDef *> operators = operatorsOf(kernel);
  if (operators.empty())
    return;
  std::set<std::string_view> records;
  for (const SyntaxTree *file : files)
    for (const language::Item *item : file->items)
      if (const auto *record = language::asIf<language::RecordItem>(item))
        records.insert(record->name.text);
  for (const SyntaxTree *file : files)
    for (const language::Item *item : file->items) {
      if (const auto *tensors = language::asIf<language::TensorItem>(item))
        for (const language::TensorItem::Declaration &declared : tensors->tensors)
          for (const Name &name : declared.names)
            checkTensor(name, declared, records.contains(declared.element.text), operators, diagnostics);
      if (const auto *scalars = language::asIf<language::ScalarItem>(item))
        for (const language::Field &field : scalars->scalars)
          checkScalar(field, diagnostics);
    }
}

void reportFixed(const SyntaxTree &kernel, Operator op, std::string_view name, Diagnostics &diagnostics) {
  const std::set<std::string, std::less<>> values = valueNames(op);
  const std::vector<std::string_view> known(values.begin(), values.end());
  for (const language::Item *item : kernel.items)
    if (const auto *fixed = language::asIf<language::FixedItem>(item))
      for (const Name &own : fixed->names)
        if (own.text == name)
          diagnostics
              .error(own.range,
                     "problems of the operator " + quoted(operatorName(op)) + " have no value " + quoted(name))
              .hint("their values are " + joined(known));
}

Status checkValues(const SyntaxTree &kernel, std::span<const SyntaxTree *const> files,
                   const language::GivenValues &values, const std::string &path) {
  const std::set<std::string, std::less<>> fixed = fixedNames(files);
  std::vector<std::string> names(fixed.begin(), fixed.end());
  names.emplace_back("dtype");
  for (const language::Item *item : kernel.items)
    if (const auto *choices = language::asIf<language::ChoiceItem>(item))
      for (const language::ChoiceItem::Choice &choice : choices->choices) {
        const auto given = values.find(choice.name.text);
        std::vector<std::string> numbers;
        for (const language::NumberExpr *number : choice.values)
          numbers.push_back(std::to_string(number->integer));
        if (given != values.end() && std::ranges::find(numbers, given->second) == numbers.end())
          return Status::invalid(given->first, given->second, "must be one of " + joined(numbers));
        names.emplace_back(choice.name.text);
      }
  for (const auto &[name, value] : values) {
    if (std::ranges::find(names, name) == names.end())
      return Status::invalid(name, value, "is neither a choice nor a fixed value of " + path,
                             "its names are " + joined(names));
    if (name == "dtype" || fixed.contains(name))
      NSA_RETURN_IF_ERROR(checkValue(name, value, files));
  }
  return Status::ok();
}

} // namespace nsa
