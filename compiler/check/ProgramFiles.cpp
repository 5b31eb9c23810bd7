#include "compiler/check/ProgramFiles.h"

#include "compiler/driver/TemplateFiles.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace nsa {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryFolder = "library", kEnding = ".tile";

// The text of a regular file, of which one byte more is read than a program may have.
Result<std::string> textOf(const fs::path &path) {
  std::error_code error;
  const bool isRegular = fs::is_regular_file(path, error);
  std::ifstream stream;
  if (isRegular)
    stream.open(path, std::ios::binary);
  if (!isRegular || !stream)
    return Status::error(ErrorCode::kIoError, "cannot read " + path.string() + ": " +
                                                  (error       ? error.message()
                                                   : isRegular ? "permission or medium"
                                                               : "no regular file"));
  std::string text(std::min<uintmax_t>(fs::file_size(path, error), language::kMostSourceBytes + 1), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

} // namespace

const language::SyntaxTree *ProgramFiles::parse(std::string name, std::string text) {
  const language::SourceFile &file = files.emplace_back(std::move(name), std::move(text));
  return trees.emplace_back(language::parse(file, diagnostics)).get();
}

Result<const language::SyntaxTree *> ProgramFiles::read(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(std::string text, textOf(path));
  return parse(path, std::move(text));
}

language::LibraryResolver ProgramFiles::libraries(const std::string &path) {
  return [this, path](std::string_view name) {
    const auto [place, isNew] = known.try_emplace(std::string(name), nullptr);
    if (isNew)
      place->second = library(path, name);
    return place->second;
  };
}

const language::SyntaxTree *ProgramFiles::library(const std::string &path, std::string_view name) {
  const std::string file = std::string(name) + std::string(kEnding);
  const fs::path folder = fs::path(path).parent_path();
  for (const fs::path &place : {folder / kLibraryFolder / file, folder / file}) {
    if (place.parent_path() == folder && folder.filename() != kLibraryFolder)
      continue;
    if (Result<std::string> text = textOf(place))
      return parse(place.string(), std::move(*text));
  }
  const std::string own = "tile/" + std::string(kLibraryFolder) + "/" + file;
  const TemplateFile *embedded = TemplateFiles::embedded().find(own);
  return embedded ? parse(own, embedded->text) : nullptr;
}

const language::SourceFile *ProgramFiles::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &language::SourceFile::name);
  return found == files.end() ? nullptr : &*found;
}

} // namespace nsa
