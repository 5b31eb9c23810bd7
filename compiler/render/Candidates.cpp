#include "compiler/render/Candidates.h"

#include "runtime/base/text.h"

#include <algorithm>
#include <tuple>

namespace nsa {

namespace {

// A template with more combinations has a mistake in its header. No tuner could measure so many.
constexpr int64_t kMaxCombinations = 1 << 16;

std::string joinValues(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text.append(text.empty() ? "" : " | ").append(std::to_string(value));
  return text;
}

class Enumeration {
public:
  Enumeration(const TemplateHeader &header, const Values &given, const ResourceLimits &limits)
      : header(header), given(given), limits(limits) {}

  Result<std::vector<TemplateCandidate>> run(const std::map<std::string, std::string> &pinned) {
    NSA_RETURN_IF_ERROR(checkFixed());
    NSA_RETURN_IF_ERROR(pinChoices(pinned));

    values = given;
    std::vector<size_t> digits(choices.size(), 0);
    do {
      NSA_RETURN_IF_ERROR(consider(digits));
    } while (advance(digits));

    if (admissible.empty())
      return nothingAdmissible(!pinned.empty());
    std::sort(admissible.begin(), admissible.end(), [](const TemplateCandidate &a, const TemplateCandidate &b) {
      return std::tie(a.cost, a.configText) < std::tie(b.cost, b.configText);
    });
    return std::move(admissible);
  }

  TemplateExclusion lastExclusion() const { return {removedPlace, removedRule}; }

private:
  Status checkFixed() {
    for (const TemplateHeader::Fixed &fixed : header.fixed) {
      const bool isZero = !given.find(fixed.name) && isNamedOnlyWhereSet(fixed.name);
      const Result<bool> isNeeded = fixed.isNeeded(given);
      if (!isNeeded)
        return isNeeded.status();
      if (isZero || !*isNeeded)
        given.set(fixed.name, 0);
      else if (!given.find(fixed.name))
        return Status::invalid(fixed.name, "", "template " + header.name + " needs this value of the problem");
    }
    return Status::ok();
  }

  Status pinChoices(const std::map<std::string, std::string> &pinned) {
    choices = header.choices;
    for (const auto &[name, text] : pinned) {
      auto choice = std::find_if(choices.begin(), choices.end(), [&](const auto &c) { return c.name == name; });
      if (choice == choices.end()) {
        std::string known;
        for (const TemplateHeader::Choice &other : header.choices)
          known.append(known.empty() ? "" : ", ").append(other.name);
        return Status::invalid(name, text, "is no choice of template " + header.name, "its choices are " + known);
      }
      int64_t value;
      if (!parseInteger(text, value) ||
          std::find(choice->values.begin(), choice->values.end(), value) == choice->values.end())
        return Status::invalid(name, text, "must be one of " + joinValues(choice->values));
      choice->values = {value};
    }
    int64_t combinations = 1;
    for (const TemplateHeader::Choice &choice : choices)
      if (__builtin_mul_overflow(combinations, static_cast<int64_t>(choice.values.size()), &combinations) ||
          combinations > kMaxCombinations)
        return templateError({header.file, 1}, "the choices multiply to more than " + std::to_string(kMaxCombinations));
    return Status::ok();
  }

  bool advance(std::vector<size_t> &digits) const {
    for (size_t i = digits.size(); i-- > 0;) {
      if (++digits[i] < choices[i].values.size())
        return true;
      digits[i] = 0;
    }
    return false;
  }

  static Status evaluate(const TemplateHeader::Line &line, const Values &values, int64_t &result) {
    Result<int64_t> value = line.evaluate(values);
    if (!value)
      return value.status();
    result = *value;
    return Status::ok();
  }

  // Remembers why a candidate was removed. The rule furthest down the file removed the last candidates.
  void remove(size_t rank, const TemplateHeader::Line &line, const std::string &rule, const Values &values) {
    if (!removedRule.empty() && rank <= removedRank)
      return;
    removedRank = rank;
    removedPlace = line.place;
    removedRule = rule;
    removedValues.clear();
    for (const std::string &name : line.expression.names())
      if (const std::string *text = values.find(name))
        removedValues.append(removedValues.empty() ? "" : " ").append(name + "=" + *text);
  }

  Status consider(const std::vector<size_t> &digits) {
    TemplateCandidate candidate;
    for (size_t i = 0; i < choices.size(); ++i)
      values.set(choices[i].name, choices[i].values[digits[i]]);

    for (size_t i = 0; i < header.steps.size(); ++i) {
      const TemplateHeader::Step &step = header.steps[i];
      int64_t value = 0;
      NSA_RETURN_IF_ERROR(evaluate(step, values, value));
      if (!step.isRequire) {
        values.set(step.name, value);
      } else if (value == 0) {
        remove(i, step, "require " + step.expression.text(), values);
        return Status::ok();
      }
    }

    NSA_RETURN_IF_ERROR(evaluate(header.threads, values, candidate.threads));
    if (candidate.threads < 1 || candidate.threads > limits.threads) {
      remove(header.steps.size(), header.threads,
             "threads " + header.threads.expression.text() + " must be 1 to " + std::to_string(limits.threads), values);
      return Status::ok();
    }
    if (header.blocks.isPresent()) {
      NSA_RETURN_IF_ERROR(evaluate(header.blocks, values, candidate.residentBlocks));
      const int64_t most = std::min(limits.residentBlocks, limits.residentThreads / candidate.threads);
      if (candidate.residentBlocks < 0 || candidate.residentBlocks > most) {
        remove(header.steps.size(), header.blocks,
               "blocks " + header.blocks.expression.text() + " = " + std::to_string(candidate.residentBlocks) + " of " +
                   std::to_string(candidate.threads) + " threads must be 0 to " + std::to_string(most),
               values);
        return Status::ok();
      }
    }
    if (header.shared.isPresent()) {
      NSA_RETURN_IF_ERROR(evaluate(header.shared, values, candidate.sharedBytes));
      if (candidate.sharedBytes < 0 || candidate.sharedBytes > limits.sharedBytes) {
        remove(header.steps.size() + 1, header.shared,
               "shared " + header.shared.expression.text() + " = " + std::to_string(candidate.sharedBytes) +
                   " must be 0 to " + std::to_string(limits.sharedBytes) + " bytes",
               values);
        return Status::ok();
      }
    }
    if (header.cost.isPresent())
      NSA_RETURN_IF_ERROR(evaluate(header.cost, values, candidate.cost));
    for (size_t i = 0; i < choices.size(); ++i)
      candidate.config[choices[i].name] = std::to_string(choices[i].values[digits[i]]);
    candidate.configText = formatValues(candidate.config);
    candidate.values = values;
    admissible.push_back(std::move(candidate));
    return Status::ok();
  }

  Status nothingAdmissible(bool wasPinned) const {
    ErrorInfo info;
    info.code = ErrorCode::kUnsupported;
    info.field = "config";
    info.value = removedValues;
    const bool isOwn = header.operators.empty(); // a program of one's own
    info.rule = std::string("no config of ") + (isOwn ? "program " : "template ") + header.name +
                " is admissible; the last fell to " + removedPlace.file + ":" + std::to_string(removedPlace.line) +
                ": " + removedRule;
    info.hint = wasPinned ? "give fewer config values"
                : isOwn   ? "give the program other values, or a choice that this line admits"
                          : "another template has to serve this problem";
    return Status(std::move(info));
  }

  const TemplateHeader &header;
  Values given; // with 0 for values that problems of this operator lack
  // Of the candidate that is considered. A line names only what earlier lines declare, so it never finds a value of the
  // candidate before. Most candidates are removed, and a copy of all values for each would take long.
  Values values;
  const ResourceLimits &limits;
  std::vector<TemplateHeader::Choice> choices; // with pinned values applied
  std::vector<TemplateCandidate> admissible;
  size_t removedRank = 0;
  TemplatePlace removedPlace;
  std::string removedRule;
  std::string removedValues;
};

} // namespace

Result<std::vector<TemplateCandidate>> enumerateCandidates(const TemplateHeader &header, const Values &given,
                                                           const std::map<std::string, std::string> &pinned,
                                                           const ResourceLimits &limits, TemplateExclusion *excluding) {
  Enumeration enumeration(header, given, limits);
  Result<std::vector<TemplateCandidate>> candidates = enumeration.run(pinned);
  if (excluding)
    *excluding = enumeration.lastExclusion();
  return candidates;
}

} // namespace nsa
