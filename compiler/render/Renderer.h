// Fills the `${name}` holes of a template line for line: line n of the result comes from line n of the template, so
// later errors can name the template's line. The text of a template has no control flow.
// Thread-safety: pure functions.
#pragma once

#include "compiler/render/Values.h"
#include "runtime/base/expression.h"
#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

// Errors: a hole that is not closed, or whose name is unknown. `file` names the template in errors.
Result<std::string> renderTemplate(std::string_view text, const std::string &file, const Values &values);

// Replaces every name that `values` knows with its number. The manifest stores `grid` in this form, so the launcher
// needs only the lengths.
Result<Expression> bindKnownNames(const Expression &expression, const Values &values);

} // namespace nsa
