#include "runtime/program/program_source.h"

#include "compiler/language/syntax/Imports.h"
#include "compiler/language/syntax/Parser.h"
#include "runtime/base/digest.h"
#include "runtime/program/parsed_program.h"

#include <filesystem>
#include <fstream>
#include <optional>

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
    return Status::invalid("program", path.string(),
                           error       ? "cannot be read: " + error.message()
                           : isRegular ? "cannot be read: permission or medium"
                                       : "is no regular file");
  std::string text(std::min<uintmax_t>(fs::file_size(path, error), language::kMostSourceBytes + 1), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

// The program's libraries lie in the folder `library` of `folder`, as for nsa check; nullopt: there are none.
Result<ProgramSource::Pointer> make(std::string file, std::string text, const std::optional<fs::path> &folder) {
  auto source = std::make_shared<ProgramSource>();
  source->file = std::move(file);
  source->text = std::move(text);
  const auto find = [&](const std::string &name) -> std::optional<std::string> {
    if (folder)
      if (Result<std::string> found = textOf(*folder / kLibraryFolder / (name + std::string(kEnding))))
        return std::move(*found);
    return std::nullopt;
  };
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<ParsedProgram> parsed, ParsedProgram::parse(*source, find));
  source->libraries = parsed->ownLibraries();
  source->kernel = std::string(parsed->kernel().name.text);
  source->choices = parsed->choices();
  Digest digest;
  digest.field(source->text);
  for (const auto &[name, library] : source->libraries)
    digest.field(name).field(library);
  source->digest = digest.finishHex();
  return ProgramSource::Pointer(std::move(source));
}

} // namespace

Result<ProgramSource::Pointer> ProgramSource::read(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(std::string text, textOf(path));
  return make(fs::path(path).filename().string(), std::move(text), fs::path(path).parent_path());
}

Result<ProgramSource::Pointer> ProgramSource::of(std::string name, std::string text) {
  return make(std::move(name), std::move(text), std::nullopt);
}

} // namespace nsa
