#include "runtime/program/parsed_program.h"

#include "compiler/language/syntax/Parser.h"

#include <utility>

namespace nsa {

namespace {

using language::SyntaxTree;

std::vector<std::string> importsOf(const SyntaxTree &tree) {
  std::vector<std::string> names;
  for (const language::Item *item : tree.items)
    if (const auto *import = language::asIf<language::ImportItem>(item))
      for (const language::Name &library : import->libraries)
        names.emplace_back(library.text);
  return names;
}

} // namespace

const SyntaxTree *ParsedProgram::add(std::string name, std::string text) {
  const language::SourceFile &file = texts.emplace_back(std::move(name), std::move(text));
  return files.emplace_back(owned.emplace_back(language::parse(file, messages)).get());
}

std::set<std::string, std::less<>> ParsedProgram::choices() const {
  std::set<std::string, std::less<>> names;
  for (const language::Item *item : files.front()->items)
    if (const auto *declared = language::asIf<language::ChoiceItem>(item))
      for (const language::ChoiceItem::Choice &choice : declared->choices)
        names.emplace(choice.name.text);
  return names;
}

Result<std::shared_ptr<ParsedProgram>> ParsedProgram::parse(const std::string &file, std::string text,
                                                            const FindLibrary &find) {
  std::shared_ptr<ParsedProgram> program(new ParsedProgram);
  const SyntaxTree *kernel = program->add(file, std::move(text));
  if (!program->messages.hasErrors() && !kernel->kernel)
    program->messages.error(kernel->library->range, "a library is no program")
        .hint("run a file that begins with 'kernel'");
  // What a library that is found twice imports is known by then. That libraries import each other in a circle is found
  // by the compiler.
  for (size_t next = 0; next < program->files.size() && !program->messages.hasErrors(); ++next)
    for (const std::string &name : importsOf(*program->files[next])) {
      if (program->libraries.contains(name))
        continue;
      if (std::optional<std::string> text = find(name)) {
        program->add(name + ".tile", *text);
        program->libraries.emplace(name, std::move(*text));
      }
    }
  NSA_RETURN_IF_ERROR(program->errors(file));
  return program;
}

Status ParsedProgram::checkReference(const language::ProgramResolver &programs) {
  language::checkReference(*files.front(), programs, messages);
  return errors(files.front()->source->name());
}

Status ParsedProgram::errors(const std::string &file) const {
  if (!messages.hasErrors())
    return Status::ok();
  return Status(ErrorInfo{.code = ErrorCode::kCompileFailed,
                          .field = "program",
                          .value = file,
                          .rule = "has errors",
                          .message = messages.toString(),
                          .hint = language::hintOfCheck(file)});
}

} // namespace nsa
