// The tile programs and their libraries (`tile/*.tile`, `tile/library/*.tile`) as syntax trees.
// Ownership: TileFiles owns the trees and the texts that they point into; the TemplateFiles outlive it.
// Thread-safety: TileFiles is immutable after construction.
#pragma once

#include "compiler/driver/TemplateFiles.h"
#include "compiler/language/Syntax.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// The folder of the libraries. A library is imported by its name, which is the name of its file.
inline constexpr std::string_view kTileFolder = "tile/", kLibraryFolder = "tile/library/";

class TileFiles {
public:
  // Parses all files, and follows all imports. An error names the file, the line and the rule.
  static Result<TileFiles> read(const TemplateFiles &files);

  struct Program {
    const TemplateFile *file;
    const language::SyntaxTree *tree;
    std::vector<const TemplateFile *> imports; // the libraries, with those that they import, ascending by path
  };
  // The kernels, ascending by path.
  const std::vector<Program> &programs() const { return kernels; }
  // The tree of a library; nullptr: there is none of this name.
  const language::SyntaxTree *library(std::string_view name) const;

private:
  struct Parsed {
    explicit Parsed(const TemplateFile &file) : file(&file), source(file.path, file.text) {}

    const TemplateFile *file;
    language::SourceFile source;
    std::unique_ptr<language::SyntaxTree> tree;
  };
  class Imports;

  std::map<std::string_view, std::unique_ptr<Parsed>> parsed; // by path
  std::vector<Program> kernels;
};

} // namespace nsa
