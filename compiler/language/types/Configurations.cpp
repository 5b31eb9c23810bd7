#include "compiler/language/types/Configurations.h"

#include <algorithm>
#include <tuple>

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

// The next combination in which one of the first `count` choices differs. False: there is none.
bool advance(std::vector<Choice> &choices, size_t count) {
  for (size_t i = count; i < choices.size(); ++i)
    choices[i].place = 0;
  for (size_t i = count; i-- > 0;) {
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
  GivenValues values = given;
  size_t count = 0; // of the choices on which it depends whether the combination is admitted
  do {
    for (const Choice &choice : *choices)
      values.insert_or_assign(std::string(choice.syntax->name.text),
                              std::to_string(choice.syntax->values[choice.place]->integer));
    const auto chosen = [&] {
      GivenValues list;
      for (const Choice &choice : *choices)
        list.insert(*values.find(choice.syntax->name.text));
      return list;
    };
    Program program;
    Declarations declarations(values, program, diagnostics, Declarations::Use::kConfiguration);
    const bool isAdmitted = declarations.read(kernel, libraries);
    if (diagnostics.hasErrors())
      return {};
    count = choices->size();
    if (isAdmitted) {
      result.list.push_back({chosen(), declarations.cost.value_or(0)});
      continue;
    }
    // Choices that stand behind the `require` do not change it.
    const uint32_t end = declarations.broken->range.begin;
    while (count > 0 && (*choices)[count - 1].syntax->name.range.begin > end)
      --count;
    if (!result.broken || declarations.broken->range.begin >= result.broken->range.begin) {
      result.broken = declarations.broken;
      result.excluded = chosen();
    }
  } while (advance(*choices, count));
  std::ranges::sort(result.list, [](const Configuration &left, const Configuration &right) {
    return std::tie(left.cost, left.choices) < std::tie(right.cost, right.choices);
  });
  return result;
}

} // namespace nsa::language
