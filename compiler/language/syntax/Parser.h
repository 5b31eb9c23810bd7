// From the text of a file of the tile language to its syntax tree. The parser goes on behind a mistake, at the next
// line or declaration, so that one run reports several of them. Thread-safety: parse is a pure function of the file,
// besides what it reports.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Syntax.h"

#include <memory>

namespace nsa::language {

// The tree of what could be read: all of the file, if nothing was reported. `file` must outlive the tree.
std::unique_ptr<SyntaxTree> parse(const SourceFile &file, Diagnostics &diagnostics);

} // namespace nsa::language
