// How statements pick from a value along an outer axis, which decides whether its parts are values of their own.
// Thread-safety: a pure function.
#pragma once

#include "compiler/language/syntax/Syntax.h"

namespace nsa::language {

// Whether one of the statements picks from `name` at a place that only a run of the program knows: not a number, and
// not the index of a static loop.
bool picksAtRunTime(std::span<const Statement *const> statements, std::string_view name);

} // namespace nsa::language
