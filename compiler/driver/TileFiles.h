// Files of the tile language as syntax trees: one that a caller names and the libraries that it imports, or all of a
// folder of templates (`tile/*.tile`, `tile/library/*.tile`). A library is found by its name alone, so that no import
// leaves the folders of libraries.
// Ownership: TileFiles owns the trees, the texts that they point into and the messages about them; the TemplateFiles
// outlive it. Thread-safety: none, but for library().
#pragma once

#include "compiler/driver/Request.h"
#include "compiler/driver/TemplateFiles.h"
#include "compiler/language/syntax/Imports.h"
#include "compiler/language/syntax/References.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

class TileFiles {
public:
  explicit TileFiles(const TemplateFiles &templates = TemplateFiles::embedded()) : templates(templates) {}
  TileFiles(const TileFiles &) = delete;
  TileFiles &operator=(const TileFiles &) = delete;

  // What is wrong with the texts.
  language::Diagnostics &diagnostics() { return messages; }

  // Reads and parses a file. The result is an error if the file cannot be read.
  Result<const language::SyntaxTree *> read(const std::string &path);
  // Parses a text as if it were a file.
  const language::SyntaxTree *parse(std::string name, std::string text);
  // Finds libraries of the file at `path`: in the folder `library` beside the file, or beside the file if that is a
  // library itself, else among the templates.
  language::LibraryResolver libraries(const std::string &path);
  // Finds the programs beside the file at `path`.
  language::ProgramResolver programs(const std::string &path);
  // The file that messages call `name`; nullptr: there is none.
  const language::SourceFile *find(std::string_view name) const;

  struct Program {
    const TemplateFile *file;
    const language::SyntaxTree *tree;
    std::vector<const TemplateFile *> imports; // the libraries, with those that they import, ascending by path
  };
  // Parses all templates, and follows all imports. Returns the kernels, ascending by path. An error names the file, the
  // line and the rule.
  Result<std::vector<Program>> readTemplates();
  // Parses a program of one's own and all that it imports: first from the program's own libraries, then from the
  // templates. An error names the text, the line and the rule.
  Result<Program> readProgram(const ProgramSource &source);
  // A library that was read; nullptr: there is none of this name.
  const language::SyntaxTree *library(std::string_view name) const;

private:
  const language::SyntaxTree *findLibrary(const std::string &path, std::string_view name);
  // The names of the libraries among the templates.
  std::vector<std::string> templateLibraries() const;

  const TemplateFiles &templates;
  std::deque<TemplateFile> ownFiles; // of readProgram
  language::Diagnostics messages;
  std::deque<language::SourceFile> files;
  std::deque<std::unique_ptr<language::SyntaxTree>> trees;
  std::map<std::string, const language::SyntaxTree *, std::less<>> known; // libraries by their names
};

} // namespace nsa
