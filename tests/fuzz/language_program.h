// A program of the tile language as the fuzz targets compile it: its libraries are the libraries of the repository, and
// each fixed value and each choice has a value. Thread-safety: one thread.
#pragma once

#include "compiler/language/syntax/Parser.h"
#include "compiler/language/types/Declarations.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace nsa::fuzz {

class LanguageProgram {
public:
  // Parses the text. `tree` is the kernel's, and has no head after an error.
  explicit LanguageProgram(std::string_view text);

  // The libraries that the text may import. What is wrong with them ends the program.
  language::LibraryResolver libraries();
  // Values of the problem, and the first value of each choice, for a kind of target.
  language::GivenValues values(bool isGpu);
  // All messages have a reason, are about a place in a file that was read, and can be printed.
  void checkMessages(const language::Diagnostics &diagnostics) const;

  language::Diagnostics diagnostics; // of the text
  const language::SourceFile &file() const { return files.front(); }
  std::unique_ptr<language::SyntaxTree> tree;

private:
  const language::SyntaxTree *library(std::string_view name);

  std::deque<language::SourceFile> files;
  std::map<std::string, std::unique_ptr<language::SyntaxTree>, std::less<>> known;
};

} // namespace nsa::fuzz
