#include "compiler/check/Check.h"

#include "compiler/check/CheckedProblems.h"
#include "compiler/check/KernelNames.h"
#include "compiler/check/ProgramCheck.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/language/syntax/FindName.h"
#include "compiler/language/syntax/Format.h"
#include "compiler/language/syntax/Suggestion.h"
#include "compiler/render/TileHeader.h"
#include "runtime/base/expression.h"
#include "runtime/base/kernel_arguments.h"
#include "runtime/model/targets.h"

#include <algorithm>
#include <span>
#include <vector>

namespace nsa {

namespace {

using language::Diagnostics;
using language::SyntaxTree;
using NameSet = std::set<std::string, std::less<>>;

// What a launch needs.
void checkLaunch(const SyntaxTree &kernel, Diagnostics &diagnostics) {
  bool hasGrid = false, hasThreads = false;
  for (const language::Item *item : kernel.items) {
    hasGrid |= item->kind == language::ItemKind::kGrid;
    hasThreads |= item->kind == language::ItemKind::kThreads;
  }
  const language::SourceRange &name = kernel.kernel->name.range;
  if (!hasGrid)
    diagnostics.error(name, "the kernel declares no grid").hint("grid block = ceildiv(rows, row_tile), 1, 1");
  if (!hasThreads)
    diagnostics.error(name, "the kernel declares no threads").hint("threads 32 * warps");
}

// The operators that a kernel serves, and the words of its targets.
void checkWords(const SyntaxTree &kernel, Diagnostics &diagnostics) {
  for (const language::Name &name : kernel.kernel->operators) {
    const OperatorDef *def = findOperator(name.text);
    if (!def)
      diagnostics.error(name.range, "there is no operator '" + std::string(name.text) + "'")
          .hint("a kernel of one's own has no 'serves'");
    else if (def->isWhole)
      diagnostics.error(name.range, "the operator '" + std::string(name.text) + "' is several kernels, and has none");
  }
  for (const language::Item *item : kernel.items)
    if (const auto *targets = language::asIf<language::TargetsItem>(item))
      for (const language::Name &name : targets->targets)
        if (!Target::knowsWord(name.text))
          diagnostics.error(name.range, "there is no target '" + std::string(name.text) + "'")
              .hint("the targets are gpu, " + targetNames());
}

// The sizes of a grid and of tensors are computed for a call, so that a name without a meaning is not met before.
void checkSizes(const SyntaxTree &kernel, std::span<const SyntaxTree *const> files, Diagnostics &diagnostics) {
  std::vector<std::string_view> known;
  for (const DriverValue &value : driverValues())
    known.push_back(value.name);
  for (const SyntaxTree *file : files)
    for (const language::Item *item : file->items) {
      if (const auto *fixed = language::asIf<language::FixedItem>(item))
        for (const language::Name &name : fixed->names)
          known.push_back(name.text);
      if (const auto *constants = language::asIf<language::ConstItem>(item))
        for (const language::Binding &binding : constants->bindings)
          known.push_back(binding.name.text);
      if (const auto *choices = language::asIf<language::ChoiceItem>(item))
        for (const language::ChoiceItem::Choice &choice : choices->choices)
          known.push_back(choice.name.text);
      if (const auto *scalars = language::asIf<language::ScalarItem>(item))
        for (const language::Field &field : scalars->scalars)
          known.push_back(field.name.text);
    }
  const bool isOfOperator = !kernel.kernel->operators.empty();
  const auto isUnknown = [&](std::string_view name) {
    int64_t number = 0;
    return std::ranges::find(known, name) == known.end() && !lookupEnumerator(name, number) &&
           !(isOfOperator && findGridSize(name));
  };
  const auto check = [&](const language::Expr *size, const std::string &rule) {
    if (const language::NameExpr *name = language::findName(size, isUnknown)) {
      const std::string text(name->text);
      const std::string_view nearest = language::nearestWord(name->text, known);
      diagnostics.error(name->range, rule + " '" + text + "'")
          .hint(nearest.empty() ? "declare it: scalar " + text + ": i32"
                                : "did you mean '" + std::string(nearest) + "'?");
    }
  };
  for (const language::Item *item : kernel.items) {
    if (const auto *grid = language::asIf<language::GridItem>(item))
      for (const language::GridItem::Dimension &dimension : grid->dimensions)
        for (const language::Binding &part : dimension.parts)
          check(part.value, "no size of the grid is called");
    if (const auto *tensors = language::asIf<language::TensorItem>(item))
      for (const language::TensorItem::Declaration &tensor : tensors->tensors)
        for (const language::Expr *extent : tensor.extents)
          if (extent)
            check(extent, "no size of a tensor is called");
  }
}

// The work of a call is the same on all targets and for all configurations, so that only the call's own numbers have a
// meaning in it.
void checkWork(const SyntaxTree &kernel, std::span<const SyntaxTree *const> files, Diagnostics &diagnostics) {
  std::vector<std::string_view> known = {"dtype_bytes", "dtype"};
  const auto isUnknown = [&](std::string_view name) {
    int64_t number = 0;
    return std::ranges::find(known, name) == known.end() && !lookupEnumerator(name, number);
  };
  for (const SyntaxTree *file : files)
    for (const language::Item *item : file->items) {
      if (const auto *fixed = language::asIf<language::FixedItem>(item))
        for (const language::Name &name : fixed->names)
          known.push_back(name.text);
      if (const auto *constants = language::asIf<language::ConstItem>(item))
        for (const language::Binding &binding : constants->bindings)
          if (!language::findName(binding.value, isUnknown))
            known.push_back(binding.name.text);
      if (const auto *scalars = language::asIf<language::ScalarItem>(item))
        for (const language::Field &field : scalars->scalars)
          if (field.type->element.text == "i32")
            known.push_back(field.name.text);
    }
  for (const language::Item *item : kernel.items)
    if (const auto *work = language::asIf<language::WorkItem>(item))
      for (const language::Binding &part : work->bindings) {
        if (const Result<Expression> formula = Expression::parse(language::inOneLine(part.value->range)); !formula)
          diagnostics.error(part.value->range,
                            "the work of a call is an expression of integers: " + formula.status().error().rule);
        else if (const language::NameExpr *name = language::findName(part.value, isUnknown))
          diagnostics.error(name->range, "the work of a call is not made of '" + std::string(name->text) + "'")
              .hint("it is made of fixed values, constants of them, and scalars of i32");
      }
}

Result<std::vector<const Target *>> targetsOf(const SyntaxTree &kernel, const CheckRequest &request) {
  std::vector<const Target *> targets;
  for (const TargetDef &def : kTargets) {
    NSA_ASSIGN_OR_RETURN(const Target *target, Target::find(def.name));
    bool isNamed = true;
    for (const language::Item *item : kernel.items)
      if (const auto *named = language::asIf<language::TargetsItem>(item))
        isNamed =
            std::ranges::any_of(named->targets, [&](const language::Name &name) { return target->matches(name.text); });
    if (isNamed && (request.target.empty() || request.target == def.name))
      targets.push_back(target);
  }
  if (!targets.empty())
    return targets;
  NSA_RETURN_IF_ERROR(Target::find(request.target).status());
  return Status::invalid("target", request.target, "is no target of " + request.path);
}

CheckReport failed(const Diagnostics &diagnostics) { return {false, diagnostics.toString(), ""}; }

} // namespace

Result<CheckReport> checkProgram(const CheckRequest &request) {
  TileFiles files;
  Diagnostics &diagnostics = files.diagnostics();
  NSA_ASSIGN_OR_RETURN(const SyntaxTree *tree, files.read(request.path));
  if (diagnostics.hasErrors())
    return failed(diagnostics);
  const language::LibraryResolver libraries = files.libraries(request.path);
  language::LibraryResolver resolve = libraries;
  if (tree->library) {
    // The declarations of a library are checked in a kernel that imports it.
    const std::string name(tree->library->name.text);
    resolve.find = [&libraries, library = tree, name](std::string_view text) {
      return text == name ? library : libraries.find(text);
    };
    tree = files.parse("a kernel that imports " + name,
                       "kernel of_" + name + "\nimport " + name + "\ngrid 1\nthreads 32\n");
  }
  const std::vector<const SyntaxTree *> program = language::filesOf(*tree, resolve, diagnostics);
  const NameSet fixed = fixedNames(program);
  checkLaunch(*tree, diagnostics);
  checkWords(*tree, diagnostics);
  checkSizes(*tree, program, diagnostics);
  checkWork(*tree, program, diagnostics);
  if (const language::ReferenceItem *clause = language::referenceOf(*tree); clause && !tree->kernel->operators.empty())
    diagnostics.error(clause->range, "a kernel of an operator has no reference")
        .hint("the operator says which kernel defines its results");
  else
    language::checkReference(*tree, files.programs(request.path), diagnostics);
  if (diagnostics.hasErrors())
    return failed(diagnostics);
  Result<TemplateHeader> header = readTileChoices(*tree);
  if (!header) {
    reportHeader(*tree, header.status(), diagnostics);
    return failed(diagnostics);
  }
  NSA_RETURN_IF_ERROR(checkValues(*tree, program, request.values, request.path));
  NSA_ASSIGN_OR_RETURN(const std::vector<const Target *> targets, targetsOf(*tree, request));
  // What is wrong with a kernel's names does not hide what else is wrong.
  Diagnostics names;
  checkArguments(*tree, program, names);
  NameSet assumed;
  const std::vector<CheckedProblem> problems = checkedProblems(*tree, fixed, request.values, assumed);

  ProgramCheck check(*tree, std::move(*header), resolve, files, request.explains);
  // A GPU's program is the one that is explained, where there is one.
  for (const bool isGpu : {true, false})
    for (const Target *target : targets)
      if (target->isGpu == isGpu)
        NSA_RETURN_IF_ERROR(check.run(*target, problems));
  CheckReport report{!names.hasErrors() && !check.hasErrors(), names.toString() + check.messages(),
                     check.explanation()};
  if (report.isGood && !request.explains) {
    std::vector<std::string> names;
    for (const Target *target : targets)
      names.emplace_back(target->name);
    report.text = request.path + ": " + std::to_string(check.programs()) +
                  (check.programs() == 1 ? " program is right, for " : " programs are right, for ") + joined(names);
    if (!assumed.empty())
      report.text += "; assumed: " + joined(assumed) + " = " + std::string(kAssumedValue);
    report.text += "\n";
  }
  return report;
}

FormatReport formatProgram(std::string name, std::string_view text) {
  const language::SourceFile file(std::move(name), std::string(text));
  Diagnostics diagnostics;
  std::optional<std::string> layout = language::format(file, diagnostics);
  return {layout.has_value(), diagnostics.toString(), std::move(layout).value_or("")};
}

} // namespace nsa
