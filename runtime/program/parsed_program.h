// The syntax trees of a program of one's own and of its own libraries.
// Ownership: a ParsedProgram owns the trees and copies of the texts that they point into.
// Thread-safety: immutable after `parse`.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/References.h"
#include "compiler/language/syntax/Syntax.h"
#include "runtime/base/status.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa {

class ParsedProgram {
public:
  // Finds the text of a library that the program brings along; nullopt: the library ships with the compiler.
  using FindLibrary = std::function<std::optional<std::string>(const std::string &name)>;
  // Parses a text, and all that it imports and that `find` finds. `file` is what messages call the text. The error has
  // the messages of the parser, with lines and carets.
  static Result<std::shared_ptr<ParsedProgram>> parse(const std::string &file, std::string text,
                                                      const FindLibrary &find);

  const language::KernelItem &kernel() const { return *files.front()->kernel; }
  // Checks the kernel's clause `reference` (References.h). The error is like those of `parse`.
  Status checkReference(const language::ProgramResolver &programs);
  // The kernel's file, and behind it the own libraries that it imports.
  const std::vector<const language::SyntaxTree *> &trees() const { return files; }
  const std::map<std::string, std::string> &ownLibraries() const { return libraries; }
  // The names of the kernel's choices.
  std::set<std::string, std::less<>> choices() const;

private:
  ParsedProgram() = default;
  const language::SyntaxTree *add(std::string name, std::string text);
  Status errors(const std::string &file) const;

  language::Diagnostics messages;
  std::deque<language::SourceFile> texts;
  std::deque<std::unique_ptr<language::SyntaxTree>> owned;
  std::map<std::string, std::string> libraries;
  std::vector<const language::SyntaxTree *> files;
};

} // namespace nsa
