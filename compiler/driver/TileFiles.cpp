#include "compiler/driver/TileFiles.h"

#include "compiler/language/Parser.h"
#include "compiler/render/TileHeader.h"

#include <algorithm>
#include <set>

namespace nsa {

// Collects what a file imports. Libraries that import each other have no order in which they could be read.
class TileFiles::Imports {
public:
  explicit Imports(const TileFiles &files) : files(files) {}

  Status follow(const language::SyntaxTree &tree) {
    for (const language::Item *item : tree.items)
      if (const auto *import = language::asIf<language::ImportItem>(item))
        for (const language::Name &name : import->libraries)
          NSA_RETURN_IF_ERROR(add(name));
    return Status::ok();
  }

  std::vector<const TemplateFile *> list() const {
    std::vector<const TemplateFile *> result(found.begin(), found.end());
    std::ranges::sort(result, {}, &TemplateFile::path);
    return result;
  }

private:
  Status add(const language::Name &name) {
    const std::string path = std::string(kLibraryFolder).append(name.text) + ".tile";
    const TemplatePlace place{.file = name.range.file->name(), .line = static_cast<int>(name.range.position().line)};
    const auto entry = files.parsed.find(path);
    if (entry == files.parsed.end())
      return templateError(place, "there is no library '" + std::string(name.text) + "'", "it would be " + path);
    const Parsed &library = *entry->second;
    if (std::ranges::find(open, library.file) != open.end())
      return templateError(place, "the library '" + std::string(name.text) + "' imports itself");
    if (!found.insert(library.file).second)
      return Status::ok();
    open.push_back(library.file);
    NSA_RETURN_IF_ERROR(follow(*library.tree));
    open.pop_back();
    return Status::ok();
  }

  const TileFiles &files;
  std::set<const TemplateFile *> found;
  std::vector<const TemplateFile *> open; // being read
};

Result<TileFiles> TileFiles::read(const TemplateFiles &files) {
  TileFiles result;
  for (const TemplateFile &file : files.files()) {
    if (!file.path.starts_with(kTileFolder))
      continue;
    auto parsed = std::make_unique<Parsed>(file);
    language::Diagnostics diagnostics;
    parsed->tree = language::parse(parsed->source, diagnostics);
    if (diagnostics.hasErrors())
      return templateError(diagnostics);
    const bool isLibrary = file.path.starts_with(kLibraryFolder);
    const std::string name = file.path.substr(kLibraryFolder.size() * isLibrary);
    if (isLibrary ? !parsed->tree->library : !parsed->tree->kernel)
      return templateError({file.path, 1}, isLibrary ? "a file of tile/library is a library"
                                                     : "a file of tile is a kernel, and a library is in tile/library");
    if (isLibrary && name != std::string(parsed->tree->library->name.text) + ".tile")
      return templateError({file.path, 1}, "the library '" + std::string(parsed->tree->library->name.text) +
                                               "' has another name than its file");
    result.parsed.emplace(file.path, std::move(parsed));
  }
  for (const auto &[path, parsed] : result.parsed) {
    Imports imports(result);
    NSA_RETURN_IF_ERROR(imports.follow(*parsed->tree));
    if (parsed->tree->kernel)
      result.kernels.push_back({parsed->file, parsed->tree.get(), imports.list()});
  }
  return result;
}

const language::SyntaxTree *TileFiles::library(std::string_view name) const {
  const auto found = parsed.find(std::string(kLibraryFolder).append(name) + ".tile");
  return found == parsed.end() ? nullptr : found->second->tree.get();
}

} // namespace nsa
