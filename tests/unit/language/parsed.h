// A text of the tile language as a test parses it.
#pragma once

#include "compiler/language/syntax/Parser.h"

#include <memory>
#include <string>
#include <utility>

namespace nsa::language {

struct Parsed {
  explicit Parsed(std::string text, std::string name = "x.tile")
      : file(std::move(name), std::move(text)), tree(parse(file, diagnostics)) {}

  std::string messages() const { return diagnostics.toString(); }

  SourceFile file;
  Diagnostics diagnostics;
  std::unique_ptr<SyntaxTree> tree;
};

} // namespace nsa::language
