#include "compiler/language/syntax/References.h"

#include "compiler/language/syntax/Suggestion.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nsa::language {

namespace {

constexpr const char *kFixingHint = "fix choices of this program: reference CHOICE = NUMBER";

std::string counted(size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

// What a caller passes, by its name.
template <typename Declared> struct Argument {
  Name name;
  Declared declared;
};
template <typename Declared> using Arguments = std::vector<Argument<Declared>>;

Arguments<const TensorItem::Declaration *> tensorsOf(const SyntaxTree &file) {
  Arguments<const TensorItem::Declaration *> found;
  for (const Item *item : file.items)
    if (const auto *tensors = asIf<TensorItem>(item))
      for (const TensorItem::Declaration &declared : tensors->tensors)
        for (const Name &name : declared.names)
          found.push_back({name, &declared});
  return found;
}

Arguments<const TypeSyntax *> scalarsOf(const SyntaxTree &file) {
  Arguments<const TypeSyntax *> found;
  for (const Item *item : file.items)
    if (const auto *scalars = asIf<ScalarItem>(item))
      for (const Field &field : scalars->scalars)
        found.push_back({field.name, field.type});
  return found;
}

std::string_view elementOf(const Name &element, std::string_view otherwise) {
  return element.isEmpty() ? otherwise : element.text;
}

// What a declaration says of the tensor; two that say the same are compared as equal.
std::vector<std::string> traitsOf(const TensorItem::Declaration *tensor) {
  return {counted(tensor->coordinates.size(), "coordinate"),
          tensor->column.isEmpty() ? "rows of one element" : "rows of several elements",
          "elements of " + std::string(elementOf(tensor->element, "io")),
          tensor->isOptional ? "'optional'" : "no 'optional'",
          tensor->isInout ? "'inout'" : "no 'inout'",
          tensor->pageSize ? "'paged'" : "no 'paged'"};
}

std::vector<std::string> traitsOf(const TypeSyntax *type) {
  return {"the type " + std::string(elementOf(type->element, "f32"))};
}

class Checker {
public:
  Checker(const SyntaxTree &kernel, Diagnostics &diagnostics) : kernel(kernel), diagnostics(diagnostics) {}

  void run(const ProgramResolver &programs) {
    const ReferenceItem *clause = nullptr;
    for (const Item *item : kernel.items)
      if (const auto *found = asIf<ReferenceItem>(item); found && std::exchange(clause, found)) {
        diagnostics.error(found->range, "'reference' stands twice").note(referenceOf(kernel)->range, "it stands here");
        return;
      }
    if (!clause)
      return;
    if (clause->choices.empty())
      checkProgram(clause->kernel, programs);
    else
      checkChoices(*clause);
  }

private:
  void checkChoices(const ReferenceItem &clause) {
    std::unordered_map<std::string_view, const ChoiceItem::Choice *> declared;
    std::vector<std::string_view> names;
    for (const Item *item : kernel.items)
      if (const auto *choice = asIf<ChoiceItem>(item))
        for (const ChoiceItem::Choice &each : choice->choices)
          if (declared.emplace(each.name.text, &each).second)
            names.push_back(each.name.text);
    std::unordered_map<std::string_view, Name> seen;
    for (const ReferenceItem::Choice &fixed : clause.choices) {
      const auto found = declared.find(fixed.name.text);
      if (const auto [first, isNew] = seen.emplace(fixed.name.text, fixed.name); !isNew)
        diagnostics.error(fixed.name.range, quoted(fixed.name.text) + " is fixed twice")
            .note(first->second.range, "it is fixed here");
      else if (found == declared.end())
        unknownChoice(fixed.name, names);
      else
        checkValue(fixed, *found->second);
    }
  }

  void unknownChoice(const Name &name, const std::vector<std::string_view> &names) {
    Diagnostic &message = diagnostics.error(name.range, "the program " + quoted(kernel.kernel->name.text) +
                                                            " has no choice " + quoted(name.text));
    if (const std::string_view nearest = nearestWord(name.text, names); !nearest.empty())
      message.hint("did you mean " + quoted(nearest) + "?");
  }

  void checkValue(const ReferenceItem::Choice &fixed, const ChoiceItem::Choice &choice) {
    std::string numbers;
    for (const NumberExpr *value : choice.values) {
      if (value->integer == fixed.value->integer)
        return;
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(value->integer);
    }
    diagnostics
        .error(fixed.value->range,
               "the choice " + quoted(fixed.name.text) + " is never " + std::to_string(fixed.value->integer))
        .note(choice.name.range, "it is one of " + numbers);
  }

  void checkProgram(const Name &name, const ProgramResolver &programs) {
    const Name &own = kernel.kernel->name;
    if (name.text == own.text) {
      diagnostics.error(name.range, "a program cannot be its own reference").hint(kFixingHint);
      return;
    }
    if (!programs) {
      diagnostics.error(name.range, "a text that is no file has no program " + quoted(name.text) + " beside it")
          .hint(kFixingHint);
      return;
    }
    const SyntaxTree *program = programs(name.text);
    if (diagnostics.hasErrors())
      return; // in the program's text
    if (!program) {
      diagnostics.error(name.range, "there is no program " + quoted(name.text))
          .hint("save it as " + std::string(name.text) + ".tile in the folder of this file");
      return;
    }
    const Name &is = program->kernel ? program->kernel->name : program->library->name;
    if (!program->kernel || is.text != name.text) {
      diagnostics
          .error(name.range, "the file of the program " + quoted(name.text) + " is " +
                                 (program->kernel ? "kernel " : "library ") + quoted(is.text))
          .note(is.range, "it says so here");
      return;
    }
    if (const ReferenceItem *further = referenceOf(*program); further && further->choices.empty()) {
      diagnostics.error(name.range, "the reference " + quoted(name.text) + " names a reference itself")
          .note(further->range, "it stands here")
          .hint("a reference may fix its choices, and names no program");
      return;
    }
    compare("tensor", tensorsOf(kernel), tensorsOf(*program), is);
    compare("scalar", scalarsOf(kernel), scalarsOf(*program), is);
  }

  template <typename Declared>
  void compare(const char *what, const Arguments<Declared> &own, const Arguments<Declared> &others,
               const Name &reference) {
    const auto find = [](const Arguments<Declared> &list, std::string_view name) {
      return std::ranges::find_if(list, [&](const Argument<Declared> &each) { return each.name.text == name; });
    };
    for (const Argument<Declared> &each : own) {
      const auto other = find(others, each.name.text);
      if (other == others.end())
        diagnostics
            .error(each.name.range,
                   "the reference " + quoted(reference.text) + " has no " + what + " " + quoted(each.name.text))
            .note(reference.range, "it begins here");
      else
        compareOne(what, each, *other, reference);
    }
    for (const Argument<Declared> &other : others)
      if (find(own, other.name.text) == own.end())
        diagnostics
            .error(other.name.range, "the program " + quoted(kernel.kernel->name.text) + " has no " + what + " " +
                                         quoted(other.name.text) + ", which its reference has")
            .note(kernel.kernel->name.range, "it begins here");
  }

  template <typename Declared>
  void compareOne(const char *what, const Argument<Declared> &own, const Argument<Declared> &other,
                  const Name &reference) {
    const std::vector<std::string> is = traitsOf(own.declared), wanted = traitsOf(other.declared);
    const auto differs = std::ranges::mismatch(is, wanted);
    if (differs.in1 != is.end())
      diagnostics
          .error(own.name.range, std::string(what) + " " + quoted(own.name.text) + " has " + *differs.in1 +
                                     " here, and " + *differs.in2 + " in the reference " + quoted(reference.text))
          .note(other.name.range, "the reference declares it here");
  }

  const SyntaxTree &kernel;
  Diagnostics &diagnostics;
};

} // namespace

const ReferenceItem *referenceOf(const SyntaxTree &file) {
  for (const Item *item : file.items)
    if (const auto *reference = asIf<ReferenceItem>(item))
      return reference;
  return nullptr;
}

void checkReference(const SyntaxTree &kernel, const ProgramResolver &programs, Diagnostics &diagnostics) {
  Checker(kernel, diagnostics).run(programs);
}

} // namespace nsa::language
