// The files of one program of the tile language: the file that a caller names, and the libraries that it imports. A
// library stands in the folder `library` beside the file, or beside the file if that is a library itself, else among
// the libraries of the compiler. A library is found by its name alone, so that no import leaves these folders.
// The trees and the messages about them point into the files, which stay as long as the ProgramFiles object.
// Thread-safety: none.
#pragma once

#include "compiler/language/Parser.h"
#include "compiler/language/types/Declarations.h"
#include "runtime/base/status.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace nsa {

class ProgramFiles {
public:
  explicit ProgramFiles(language::Diagnostics &diagnostics) : diagnostics(diagnostics) {}

  // Reads and parses the file that the caller names. What is wrong with its text is reported. The result is an error
  // if the file cannot be read.
  Result<const language::SyntaxTree *> read(const std::string &path);
  // Parses a text as if it were a file.
  const language::SyntaxTree *parse(std::string name, std::string text);
  // Finds libraries of the file at `path`.
  language::LibraryResolver libraries(const std::string &path);
  // The file that messages call `name`; nullptr: there is none.
  const language::SourceFile *find(std::string_view name) const;

private:
  const language::SyntaxTree *library(const std::string &path, std::string_view name);

  language::Diagnostics &diagnostics;
  std::deque<language::SourceFile> files;
  std::deque<std::unique_ptr<language::SyntaxTree>> trees;
  std::map<std::string, const language::SyntaxTree *, std::less<>> known; // libraries by their names
};

} // namespace nsa
