#include "tests/harness/tile/interpreted.h"

#include "compiler/language/syntax/Parser.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace nsa::test::tile {

namespace {

using namespace language;
using Libraries = std::map<std::string, std::string>;

// The kernel, and behind it the libraries that it imports.
class Files {
public:
  Files(const std::string &text, const Libraries &libraries) : libraries(libraries) { add("program.tile", text); }

  std::vector<const SyntaxTree *> trees() const {
    std::vector<const SyntaxTree *> result;
    for (const auto &tree : owned)
      result.push_back(tree.get());
    return result;
  }

private:
  void add(const std::string &name, const std::string &text) {
    Diagnostics diagnostics;
    const SourceFile &file = files.emplace_back(name, text);
    const SyntaxTree *tree = owned.emplace_back(parse(file, diagnostics)).get();
    if (diagnostics.hasErrors())
      throw std::runtime_error(diagnostics.toString());
    for (const Item *item : tree->items)
      if (const auto *import = asIf<ImportItem>(item))
        for (const Name &library : import->libraries)
          addLibrary(std::string(library.text));
  }

  void addLibrary(const std::string &name) {
    if (std::ranges::any_of(files, [&](const SourceFile &file) { return file.name() == name + ".tile"; }))
      return;
    const auto found = libraries.find(name);
    if (found == libraries.end())
      throw std::runtime_error("the call has no library " + name);
    add(name + ".tile", found->second);
  }

  const Libraries &libraries;
  std::deque<SourceFile> files;
  std::deque<std::unique_ptr<SyntaxTree>> owned;
};

} // namespace

TileFindings interpret(const std::string &text, TileCall &call, const Libraries &libraries) {
  const Files files(text, libraries);
  Result<TileFindings> findings = interpreter::interpret(files.trees(), call);
  if (!findings)
    throw std::runtime_error(findings.status().error().message);
  return std::move(*findings);
}

} // namespace nsa::test::tile
