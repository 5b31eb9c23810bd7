#include "compiler/driver/TileFiles.h"

#include "compiler/language/syntax/Parser.h"
#include "compiler/render/TileHeader.h"

#include <algorithm>
#include <filesystem>

namespace nsa {

namespace {

namespace fs = std::filesystem;

// The folder of templates, and that of libraries, there and beside a file.
constexpr std::string_view kTileFolder = "tile/", kLibraryFolder = "library/", kEnding = ".tile";

Result<std::string> textOf(const fs::path &path) {
  std::string trouble;
  if (std::optional<std::string> text = language::readSource(path, trouble))
    return std::move(*text);
  return Status::invalid("program", path.string(), trouble);
}

std::string fileOf(std::string_view name) { return std::string(name) + std::string(kEnding); }

std::string templateOf(std::string_view library) {
  return std::string(kTileFolder) + std::string(kLibraryFolder) + fileOf(library);
}

// The folders in which a file's own libraries lie. A library has others beside it.
std::vector<fs::path> libraryFoldersOf(const fs::path &file) {
  const fs::path folder = file.parent_path();
  std::vector<fs::path> result = {folder / kLibraryFolder};
  if (folder.filename().string() + "/" == kLibraryFolder)
    result.push_back(folder);
  return result;
}

} // namespace

const language::SyntaxTree *TileFiles::parse(std::string name, std::string text) {
  const language::SourceFile &file = files.emplace_back(std::move(name), std::move(text));
  return trees.emplace_back(language::parse(file, messages)).get();
}

Result<const language::SyntaxTree *> TileFiles::read(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(std::string text, textOf(path));
  return parse(path, std::move(text));
}

language::LibraryResolver TileFiles::libraries(const std::string &path) {
  const auto find = [this, path](std::string_view name) {
    const auto [place, isNew] = known.try_emplace(std::string(name), nullptr);
    if (isNew)
      place->second = findLibrary(path, name);
    return place->second;
  };
  return {find, [this, path] {
            std::vector<std::string> names = templateLibraries();
            for (const fs::path &folder : libraryFoldersOf(path)) {
              std::error_code end; // a folder that cannot be read has no libraries
              for (fs::directory_iterator entry(folder, end); !end && entry != fs::directory_iterator();
                   entry.increment(end))
                if (entry->path().extension() == kEnding)
                  names.push_back(entry->path().stem().string());
            }
            std::ranges::sort(names);
            return names;
          }};
}

language::ProgramResolver TileFiles::programs(const std::string &path) {
  return [this, path](std::string_view name) -> const language::SyntaxTree * {
    const Result<const language::SyntaxTree *> tree = read((fs::path(path).parent_path() / fileOf(name)).string());
    return tree ? *tree : nullptr;
  };
}

const language::SyntaxTree *TileFiles::findLibrary(const std::string &path, std::string_view name) {
  for (const fs::path &folder : libraryFoldersOf(path)) {
    const fs::path place = folder / fileOf(name);
    if (Result<std::string> text = textOf(place))
      return parse(place.string(), std::move(*text));
  }
  const TemplateFile *file = templates.find(templateOf(name));
  return file ? parse(file->path, file->text) : nullptr;
}

std::vector<std::string> TileFiles::templateLibraries() const {
  std::vector<std::string> names;
  for (const TemplateFile &file : templates.files())
    if (std::string name = fs::path(file.path).stem().string(); file.path == templateOf(name))
      names.push_back(std::move(name));
  return names;
}

const language::SourceFile *TileFiles::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &language::SourceFile::name);
  return found == files.end() ? nullptr : &*found;
}

Result<std::vector<TileFiles::Program>> TileFiles::readTemplates() {
  std::vector<Program> programs;
  for (const TemplateFile &file : templates.files()) {
    if (!file.path.starts_with(kTileFolder))
      continue;
    const language::SyntaxTree *tree = parse(file.path, file.text);
    if (messages.hasErrors())
      return templateError(messages);
    const bool isLibrary = std::string_view(file.path).substr(kTileFolder.size()).starts_with(kLibraryFolder);
    if (isLibrary ? !tree->library : !tree->kernel)
      return templateError({file.path, 1}, isLibrary ? "a file of tile/library is a library"
                                                     : "a file of tile is a kernel, and a library is in tile/library");
    if (isLibrary && file.path != templateOf(tree->library->name.text))
      return templateError({file.path, 1}, "the library '" + std::string(tree->library->name.text) +
                                               "' has another name than its file");
    if (isLibrary)
      known.emplace(tree->library->name.text, tree);
    else
      programs.push_back({&file, tree, {}});
  }
  const language::LibraryResolver resolve([this](std::string_view name) { return library(name); },
                                          [this] { return templateLibraries(); });
  for (const auto &[name, tree] : known)
    if ((void)language::filesOf(*tree, resolve, messages); messages.hasErrors())
      return templateError(messages);
  for (Program &program : programs) {
    for (const language::SyntaxTree *tree : language::filesOf(*program.tree, resolve, messages))
      if (tree->library)
        program.imports.push_back(templates.find(tree->source->name()));
    if (messages.hasErrors())
      return templateError(messages);
    std::ranges::sort(program.imports, {}, &TemplateFile::path);
  }
  return programs;
}

Result<TileFiles::Program> TileFiles::readProgram(const ProgramSource &source) {
  const TemplateFile &file = ownFiles.emplace_back(source.name, source.text);
  Program program{&file, parse(file.path, file.text), {}};
  if (!messages.hasErrors() && !program.tree->kernel)
    return templateError({file.path, 1}, "a program is a kernel, and this file is a library");
  const auto find = [&](std::string_view name) -> const language::SyntaxTree * {
    const auto [place, isNew] = known.try_emplace(std::string(name), nullptr);
    if (!isNew)
      return place->second;
    const auto own = source.libraries.find(place->first);
    const TemplateFile *text = own != source.libraries.end() ? &ownFiles.emplace_back(fileOf(name), own->second)
                                                             : templates.find(templateOf(name));
    if (text) {
      place->second = parse(text->path, text->text);
      program.imports.push_back(text);
    }
    return place->second;
  };
  const auto names = [&] {
    std::vector<std::string> result = templateLibraries();
    for (const auto &[name, text] : source.libraries)
      result.push_back(name);
    std::ranges::sort(result);
    return result;
  };
  if (program.tree)
    (void)language::filesOf(*program.tree, {find, names}, messages);
  if (messages.hasErrors())
    return programError(messages, file.path);
  std::ranges::sort(program.imports, {}, &TemplateFile::path);
  return program;
}

const language::SyntaxTree *TileFiles::library(std::string_view name) const {
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

} // namespace nsa
