#include "compiler/language/types/Configurations.h"

#include <algorithm>

namespace nsa::language {

namespace {

struct Choice {
  const ChoiceItem::Choice *syntax;
  size_t place = 0; // of the value that is tried
};

// The choices that are not given. Nothing, if they have too many combinations.
std::optional<std::vector<Choice>> choicesOf(const SyntaxTree &kernel, const GivenValues &given,
                                             Diagnostics &diagnostics) {
  std::vector<Choice> choices;
  int64_t combinations = 1;
  for (const Item *item : kernel.items) {
    const auto *choice = asIf<ChoiceItem>(item);
    if (!choice)
      continue;
    for (const ChoiceItem::Choice &each : choice->choices) {
      if (given.contains(each.name.text))
        continue;
      choices.push_back({&each});
      combinations *= static_cast<int64_t>(each.values.size());
      if (combinations <= kMostCombinations)
        continue;
      diagnostics
          .error(each.name.range,
                 "the choices multiply to more than " + std::to_string(kMostCombinations) + " combinations")
          .hint("no tuner can measure so many: leave out values, or derive one choice from another by const");
      return std::nullopt;
    }
  }
  return choices;
}

bool advance(std::vector<Choice> &choices) {
  for (size_t i = choices.size(); i-- > 0;) {
    if (++choices[i].place < choices[i].syntax->values.size())
      return true;
    choices[i].place = 0;
  }
  return false;
}

} // namespace

Configurations configurationsOf(const SyntaxTree &kernel, const LibraryResolver &libraries, const GivenValues &given,
                                Diagnostics &diagnostics) {
  Configurations result;
  std::optional<std::vector<Choice>> choices = choicesOf(kernel, given, diagnostics);
  if (!choices)
    return result;
  do {
    Configuration configuration;
    GivenValues values = given;
    for (const Choice &choice : *choices) {
      const std::string text = std::to_string(choice.syntax->values[choice.place]->integer);
      configuration.choices.insert_or_assign(std::string(choice.syntax->name.text), text);
      values.insert_or_assign(std::string(choice.syntax->name.text), text);
    }
    Program program;
    Declarations declarations(values, program, diagnostics, Declarations::Requirements::kHeld);
    const bool isAdmitted = declarations.read(kernel, libraries);
    if (diagnostics.hasErrors())
      return {};
    if (isAdmitted) {
      configuration.cost = declarations.cost.value_or(0);
      result.list.push_back(std::move(configuration));
    } else if (!result.broken || declarations.broken->range.begin >= result.broken->range.begin) {
      result.broken = declarations.broken;
      result.excluded = std::move(configuration.choices);
    }
  } while (advance(*choices));
  std::ranges::stable_sort(result.list, {}, &Configuration::cost);
  return result;
}

} // namespace nsa::language
