#include "compiler/check/CheckedProblems.h"

#include <algorithm>
#include <optional>

namespace nsa {

namespace {

using language::GivenValues;
using language::SyntaxTree;

constexpr DType kElementTypes[] = {DType::kBf16, DType::kF16, DType::kF32};
constexpr int64_t kManyTokens = 4096;

Spec usualSpec() {
  Spec spec;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 64;
  return spec;
}

// Each changes what is a word or a truth value in a problem.
using Change = void (*)(Spec &);
constexpr Change kChanges[] = {
    [](Spec &) {},
    [](Spec &spec) { spec.layout = Layout::kPacked; },
    [](Spec &spec) { spec.pageSize = spec.selBlock; },
    [](Spec &spec) { spec.cmpKind = CmpKind::kLinear; },
    [](Spec &spec) {
      spec.cmpKind = CmpKind::kMlp;
      spec.mlpHidden = 64;
    },
    [](Spec &spec) {
      spec.cmpKind = CmpKind::kMlp;
      spec.mlpHidden = 64;
      spec.mlpActivation = Activation::kGelu;
    },
    [](Spec &spec) {
      spec.cmpKind = CmpKind::kMlp;
      spec.mlpHidden = 64;
      spec.mlpActivation = Activation::kSilu;
    },
    [](Spec &spec) { spec.gate = Gate::kSigmoid; },
    [](Spec &spec) { spec.gate = Gate::kSoftmax; },
    [](Spec &spec) { spec.gatePerGroup = true; },
    [](Spec &spec) { spec.rotaryStyle = RotaryStyle::kInterleaved; },
    [](Spec &spec) { spec.keyOffset = true; },
};

Maxima maximaOf(int64_t tokens) { return {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = kManyTokens}; }

// Keeps of a problem's values those that the file has compiled in.
GivenValues restricted(const Problem &problem, const std::set<std::string, std::less<>> &fixed) {
  GivenValues result;
  for (const auto &[name, value] : problem.fixed())
    if (fixed.contains(name))
      result.emplace(name, value);
  return result;
}

} // namespace

std::set<std::string, std::less<>> fixedNames(std::span<const SyntaxTree *const> files) {
  std::set<std::string, std::less<>> names;
  for (const SyntaxTree *file : files)
    for (const language::Item *item : file->items)
      if (const auto *fixed = language::asIf<language::FixedItem>(item))
        for (const language::Name &name : fixed->names)
          names.emplace(name.text);
  return names;
}

std::set<std::string, std::less<>> valueNames(Operator op) {
  std::set<std::string, std::less<>> names;
  for (const Change change : kChanges) {
    Spec spec = usualSpec();
    change(spec);
    spec.op = op;
    if (const Maxima maxima = maximaOf(kManyTokens); spec.validate().isOk() && maxima.validate(spec).isOk())
      for (const auto &[name, value] : Problem::make(spec, maxima).fixed())
        names.insert(name);
  }
  return names;
}

std::vector<CheckedProblem> checkedProblems(const SyntaxTree &kernel, const std::set<std::string, std::less<>> &fixed,
                                            const GivenValues &values, std::set<std::string, std::less<>> &assumed) {
  std::vector<std::optional<Operator>> operators;
  for (const language::Name &name : kernel.kernel->operators)
    if (const OperatorDef *def = findOperator(name.text))
      operators.emplace_back(def->op);
  if (kernel.kernel->operators.empty())
    operators.emplace_back(std::nullopt);

  std::vector<CheckedProblem> problems;
  const auto add = [&](const std::optional<Operator> &op, DType dtype, GivenValues of) {
    if (!op)
      for (const std::string &name : fixed)
        if (of.try_emplace(name, kAssumedValue).second && !values.contains(name))
          assumed.insert(name);
    for (const std::string &name : fixed)
      if (isNamedOnlyWhereSet(name))
        of.try_emplace(name, "0");
    for (const auto &[name, value] : values)
      of.insert_or_assign(name, value);
    const CheckedProblem problem{op.value_or(Operator{}), dtype, std::move(of)};
    const auto isSame = [&](const CheckedProblem &other) {
      return other.op == problem.op && other.dtype == problem.dtype && other.fixed == problem.fixed;
    };
    if (std::ranges::none_of(problems, isSame))
      problems.push_back(problem);
  };
  const auto given = values.find("dtype");
  for (const DType dtype : kElementTypes) {
    if (given != values.end() && given->second != dtypeName(dtype))
      continue;
    for (const std::optional<Operator> &op : operators)
      for (const int64_t tokens : {kManyTokens, int64_t{1}})
        for (const Change change : kChanges) {
          Spec spec = usualSpec();
          spec.dtype = dtype;
          change(spec);
          if (op)
            spec.op = *op;
          const Maxima maxima = maximaOf(tokens);
          if (!spec.validate().isOk() || !maxima.validate(spec).isOk())
            continue;
          add(op, dtype, restricted(op ? Problem::make(spec, maxima) : Problem::take(spec, maxima, ~0U, ~0U), fixed));
        }
  }
  return problems;
}

} // namespace nsa
