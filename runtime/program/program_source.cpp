#include "runtime/program/program_source.h"

#include "compiler/language/syntax/Imports.h"
#include "compiler/language/syntax/Parser.h"
#include "compiler/language/syntax/References.h"
#include "runtime/base/digest.h"
#include "runtime/program/parsed_program.h"

#include <filesystem>
#include <optional>

namespace nsa {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryFolder = "library", kEnding = ".tile";

Result<std::string> textOf(const fs::path &path) {
  std::string trouble;
  if (std::optional<std::string> text = language::readSource(path, trouble))
    return std::move(*text);
  return Status::invalid("program", path.string(), trouble);
}

// A text that is being read, with its trees.
struct Reading {
  std::shared_ptr<ProgramSource> source;
  std::shared_ptr<ParsedProgram> parsed;
};

// The program's libraries lie in the folder `library` of `folder`, as for nsa check; nullopt: there are none.
Result<Reading> readTexts(std::string file, std::string text, const std::optional<fs::path> &folder) {
  Reading reading{std::make_shared<ProgramSource>(), nullptr};
  ProgramSource &source = *reading.source;
  source.file = std::move(file);
  source.text = std::move(text);
  const auto find = [&](const std::string &name) -> std::optional<std::string> {
    if (folder)
      if (Result<std::string> found = textOf(*folder / kLibraryFolder / (name + std::string(kEnding))))
        return std::move(*found);
    return std::nullopt;
  };
  NSA_ASSIGN_OR_RETURN(reading.parsed, ParsedProgram::parse(source.file, source.text, find));
  source.parsed = reading.parsed;
  source.libraries = reading.parsed->ownLibraries();
  source.kernel = std::string(reading.parsed->kernel().name.text);
  source.choices = reading.parsed->choices();
  if (const language::ReferenceItem *clause = language::referenceOf(*reading.parsed->trees().front()))
    for (const language::ReferenceItem::Choice &choice : clause->choices)
      source.referenceChoices.emplace(choice.name.text, std::to_string(choice.value->integer));
  return reading;
}

void setDigest(ProgramSource &source) {
  Digest digest;
  digest.field(source.text);
  for (const auto &[name, library] : source.libraries)
    digest.field(name).field(library);
  if (source.reference)
    digest.field(source.reference->digest);
  source.digest = digest.finishHex();
}

// The program that a text names as its reference lies in the folder of the text.
Result<ProgramSource::Pointer> make(std::string file, std::string text, const std::optional<fs::path> &path) {
  const std::optional<fs::path> folder = path ? std::optional(path->parent_path()) : std::nullopt;
  NSA_ASSIGN_OR_RETURN(Reading program, readTexts(std::move(file), std::move(text), folder));
  program.source->path = path.value_or("").string();
  Reading reference;
  Status failed;
  const auto read = [&](std::string_view name) -> const language::SyntaxTree * {
    const std::string beside = std::string(name) + std::string(kEnding);
    Result<std::string> found = textOf(*folder / beside);
    if (!found)
      return nullptr;
    Result<Reading> parsed = readTexts(beside, std::move(*found), folder);
    if (!parsed) {
      failed = parsed.status();
      return nullptr;
    }
    reference = std::move(*parsed);
    return reference.parsed->trees().front();
  };
  const Status checked = program.parsed->checkReference(folder ? language::ProgramResolver(read) : nullptr);
  NSA_RETURN_IF_ERROR(std::move(failed));
  NSA_RETURN_IF_ERROR(Status(checked));
  if (reference.source) {
    setDigest(*reference.source);
    program.source->reference = std::move(reference.source);
  }
  setDigest(*program.source);
  return ProgramSource::Pointer(std::move(program.source));
}

} // namespace

Result<ProgramSource::Pointer> ProgramSource::read(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(std::string text, textOf(path));
  return make(fs::path(path).filename().string(), std::move(text), fs::path(path));
}

Result<ProgramSource::Pointer> ProgramSource::of(std::string name, std::string text) {
  return make(std::move(name), std::move(text), std::nullopt);
}

} // namespace nsa
