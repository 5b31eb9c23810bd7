// The files of one program: a kernel and the libraries that it imports, directly or not.
// Thread-safety: a pure function, besides what it reports.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Syntax.h"

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::language {

// Finds the libraries of a program.
struct LibraryResolver {
  using Find = std::function<const SyntaxTree *(std::string_view name)>;
  using Names = std::function<std::vector<std::string>()>;

  // NOLINTBEGIN(google-explicit-constructor): a function that finds is a resolver without names
  template <std::convertible_to<Find> Function>
  LibraryResolver(Function find, Names names = {}) : find(std::move(find)), names(std::move(names)) {}
  // NOLINTEND(google-explicit-constructor)

  Find find;   // the tree of a library; nullptr where there is none of this name
  Names names; // of all libraries, among which an error suggests one; empty: it suggests none
};

// The file, and behind each file the libraries that it imports, each once. Reports a library that is not there, that
// has another name than its file, or that imports itself.
std::vector<const SyntaxTree *> filesOf(const SyntaxTree &tree, const LibraryResolver &libraries,
                                        Diagnostics &diagnostics);

} // namespace nsa::language
