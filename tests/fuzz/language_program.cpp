#include "tests/fuzz/language_program.h"

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/language_libraries.h"

#include <algorithm>

namespace nsa::fuzz {

namespace {

using namespace language;

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const uint32_t length = firstCharacter(text).length;
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

} // namespace

LanguageProgram::LanguageProgram(std::string_view text) {
  const SourceFile &file = files.emplace_back("fuzz.tile", std::string(text));
  tree = parse(file, diagnostics);
}

const SyntaxTree *LanguageProgram::library(std::string_view name) {
  const auto text = std::ranges::find(kLanguageLibraries, name, &LanguageLibrary::name);
  if (text == std::end(kLanguageLibraries))
    return nullptr;
  std::unique_ptr<SyntaxTree> &tree = known[std::string(name)];
  if (!tree) {
    Diagnostics found;
    tree = parse(files.emplace_back(std::string(name) + ".tile", std::string(text->text)), found);
    expect(found.list().empty(), "the libraries have no mistake");
  }
  return tree.get();
}

LibraryResolver LanguageProgram::libraries() {
  return [this](std::string_view name) { return library(name); };
}

GivenValues LanguageProgram::values(bool isGpu) {
  GivenValues values = {{"dtype", isGpu ? "bf16" : "fp32"},
                        {"cpu", isGpu ? "0" : "1"},
                        {"gpu", isGpu ? "1" : "0"},
                        {"dot_step", isGpu ? "16" : "1"},
                        {"dtype_bytes", isGpu ? "2" : "4"},
                        {"shared_limit", "101376"},
                        {"vector_lanes", "8"},
                        {"gate", "softmax"},
                        {"packed", isGpu ? "1" : "0"},
                        {"page_size", isGpu ? "64" : "0"}};
  const auto add = [&](const SyntaxTree &of) {
    for (const Item *item : of.items) {
      if (const auto *fixed = asIf<FixedItem>(item))
        for (const Name &name : fixed->names)
          values.try_emplace(std::string(name.text), "64");
      if (const auto *choices = asIf<ChoiceItem>(item))
        for (const ChoiceItem::Choice &choice : choices->choices)
          values.try_emplace(std::string(choice.name.text), std::to_string(choice.values.front()->integer));
    }
  };
  add(*tree);
  for (const LanguageLibrary &each : kLanguageLibraries)
    add(*library(each.name));
  if (tree->kernel && !tree->kernel->operators.empty())
    values.emplace("op", tree->kernel->operators.front().text);
  return values;
}

void LanguageProgram::checkMessages(const Diagnostics &found) const {
  const auto isError = [](const Diagnostic &message) { return message.severity == Severity::kError; };
  expect(static_cast<size_t>(std::ranges::count_if(found.list(), isError)) <= Diagnostics::kMostErrors,
         "errors have a limit");
  for (const Diagnostic &message : found.list()) {
    const SourceRange &range = message.range;
    expect(!message.text.empty(), "what is refused has a reason");
    expect(std::ranges::any_of(files, [&](const SourceFile &each) { return range.file == &each; }) &&
               range.begin <= range.end && range.end <= range.file->text().size(),
           "a message is about a place in a file");
    expect(isUtf8(message.toString()), "a message can be printed");
  }
}

} // namespace nsa::fuzz
