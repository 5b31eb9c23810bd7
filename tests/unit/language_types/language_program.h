// A tile program in a test: its text, what is known of the problem, and what comes of it.
#pragma once

#include "compiler/language/Parser.h"
#include "compiler/language/types/Types.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace nsa::language {

class LanguageProgram {
public:
  // The kernel's text. Libraries that it imports are among `libraries`.
  explicit LanguageProgram(std::string text) : file("x.tile", std::move(text)), tree(parse(file, diagnostics)) {}

  void add(std::string name, std::string text) {
    libraryFiles.emplace_back(name + ".tile", std::move(text));
    libraryTrees[name] = parse(libraryFiles.back(), diagnostics);
  }
  void give(std::string name, std::string value) { given[std::move(name)] = std::move(value); }

  // The typed program; nullptr after an error.
  const Program *type() {
    if (diagnostics.hasErrors())
      return nullptr;
    program = typeProgram(*tree, [this](std::string_view name) { return library(name); }, given, diagnostics);
    return program.get();
  }
  std::string messages() const { return diagnostics.toString(); }

  GivenValues given = {{"dtype", "bf16"}, {"cpu", "0"}, {"gpu", "1"}, {"dot_step", "16"}, {"dtype_bytes", "2"}};

private:
  const SyntaxTree *library(std::string_view name) const {
    const auto found = libraryTrees.find(name);
    return found == libraryTrees.end() ? nullptr : found->second.get();
  }

  Diagnostics diagnostics;
  SourceFile file;
  std::unique_ptr<SyntaxTree> tree;
  std::deque<SourceFile> libraryFiles;
  std::map<std::string, std::unique_ptr<SyntaxTree>, std::less<>> libraryTrees;
  std::unique_ptr<Program> program;
};

} // namespace nsa::language
