// From the syntax trees of a kernel and its libraries to a typed program, for one problem, target and candidate: what
// every name and expression is, whether that fits, and what is left of it once constants are known.
// Thread-safety: a pure function, besides what it reports.
#pragma once

#include "compiler/language/types/Declarations.h"

#include <memory>

namespace nsa::language {

// nullptr after an error. The trees and `given` must outlive the program.
std::unique_ptr<Program> typeProgram(const SyntaxTree &kernel, const LibraryResolver &libraries,
                                     const GivenValues &given, Diagnostics &diagnostics);

} // namespace nsa::language
