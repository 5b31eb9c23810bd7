// What a program does not say in its text: the type of each value that has a name, what of it exists, where it is
// filled, in which tiles a mask is applied, and which products annihilate.
// Thread-safety: pure functions.
#pragma once

#include "compiler/language/types/Program.h"

#include <string>

namespace nsa::language {

// One line for each value, indented as blocks are nested.
std::string explain(const Program &program);

// A scalar or a formula as text: "at + 47 > newest_low".
std::string textOf(const Value &value);

} // namespace nsa::language
