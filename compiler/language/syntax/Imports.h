// The files of one program: a kernel and the libraries that it imports, directly or not.
// Thread-safety: a pure function, besides what it reports.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Syntax.h"

#include <functional>
#include <string_view>
#include <vector>

namespace nsa::language {

// The tree of a library; nullptr where there is none of this name.
using LibraryResolver = std::function<const SyntaxTree *(std::string_view name)>;

// The file, and behind each file the libraries that it imports, each once. Reports a library that is not there, that
// has another name than its file, or that imports itself.
std::vector<const SyntaxTree *> filesOf(const SyntaxTree &tree, const LibraryResolver &libraries,
                                        Diagnostics &diagnostics);

} // namespace nsa::language
