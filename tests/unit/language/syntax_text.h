// A syntax tree as text, in which two trees are equal if their programs say the same: operators stand in front of their
// operands, and nothing depends on the layout. For tests and the fuzzer. Thread-safety: pure functions.
#pragma once

#include "compiler/language/syntax/Syntax.h"

#include <string>

namespace nsa::language {

// One line for each declaration and statement at the top level.
std::string syntaxText(const SyntaxTree &tree);
std::string syntaxText(const Expr &expr);

} // namespace nsa::language
