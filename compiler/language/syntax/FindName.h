// Finds names in expressions.
#pragma once

#include "compiler/language/syntax/Syntax.h"

#include <functional>
#include <string_view>

namespace nsa::language {

// The first name that `matches` among the names of which a value is made: by operators, choices and calls. Places in
// brackets are not searched. nullptr: none does.
const NameExpr *findName(const Expr *expr, const std::function<bool(std::string_view)> &matches);

} // namespace nsa::language
