#include "compiler/language/syntax/Imports.h"

#include "compiler/language/syntax/Suggestion.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

namespace nsa::language {

namespace {

class Reader {
public:
  Reader(const LibraryResolver &libraries, Diagnostics &diagnostics) : libraries(libraries), diagnostics(diagnostics) {}

  void read(const SyntaxTree &tree) {
    files.push_back(&tree);
    std::vector<std::pair<Name, const SyntaxTree *>> imports;
    for (const Item *item : tree.items)
      if (const auto *import = asIf<ImportItem>(item))
        for (const Name &name : import->libraries)
          if (const SyntaxTree *library = imported(name))
            imports.emplace_back(name, library);
    for (const auto &[name, library] : imports) {
      importing.push_back(name);
      read(*library);
      importing.pop_back();
    }
  }

  std::vector<const SyntaxTree *> files;

private:
  // The tree of a library that was not read before.
  const SyntaxTree *imported(const Name &name) {
    const auto around = std::ranges::find(importing, name.text, &Name::text);
    if (around != importing.end()) {
      Diagnostic &message = diagnostics.error(name.range, "library " + quoted(name.text) + " imports itself");
      for (const Name &each : std::span(importing).subspan(static_cast<size_t>(around - importing.begin())))
        message.note(each.range, "imported here");
      return nullptr;
    }
    if (!known.insert(name.text).second)
      return nullptr;
    const SyntaxTree *library = libraries.find(name.text);
    if (library && library->library) {
      const Name &own = library->library->name;
      if (own.text == name.text)
        return library;
      diagnostics.error(name.range, "the file of library " + quoted(name.text) + " is library " + quoted(own.text))
          .note(own.range, "it says so here");
      return nullptr;
    }
    Diagnostic &message = diagnostics.error(name.range, "there is no library " + quoted(name.text));
    const std::vector<std::string> names = libraries.names ? libraries.names() : std::vector<std::string>();
    const std::vector<std::string_view> words(names.begin(), names.end());
    if (const std::string_view nearest = nearestWord(name.text, words); !nearest.empty())
      message.hint("did you mean " + quoted(nearest) + "?");
    return nullptr;
  }

  const LibraryResolver &libraries;
  Diagnostics &diagnostics;
  std::unordered_set<std::string_view> known;
  std::vector<Name> importing; // the libraries around the file that is read
};

} // namespace

std::vector<const SyntaxTree *> filesOf(const SyntaxTree &tree, const LibraryResolver &libraries,
                                        Diagnostics &diagnostics) {
  Reader reader(libraries, diagnostics);
  reader.read(tree);
  return std::move(reader.files);
}

} // namespace nsa::language
