// The clause `reference` of a program: with whose result a tuning compares the results of the program's configurations.
// Thread-safety: pure functions, besides what they report.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Syntax.h"

#include <functional>
#include <string_view>

namespace nsa::language {

// The tree of the file NAME.tile beside a program; nullptr where there is no such file.
using ProgramResolver = std::function<const SyntaxTree *(std::string_view name)>;

// The first clause of the file; nullptr: it has none.
const ReferenceItem *referenceOf(const SyntaxTree &file);

// Checks the clause of a kernel. Fixed choices must be choices of the kernel. A program that is named must lie beside
// the kernel's file, take the same tensors and scalars, and name no program itself. A null resolver stands for a text
// that is no file.
void checkReference(const SyntaxTree &kernel, const ProgramResolver &programs, Diagnostics &diagnostics);

} // namespace nsa::language
