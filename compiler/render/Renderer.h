// Fills the `${name}` holes of a template line for line: line n of the result comes from line n of the template, so
// later errors can name the template's line. The text of a template has no control flow.
// Thread-safety: renderTemplate and bindKnownNames are pure functions.
#pragma once

#include "compiler/render/Values.h"
#include "runtime/base/expression.h"
#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

// renderTemplate fails for a hole that is not closed, and for a hole whose name is unknown. `file` names the template
// in errors.
Result<std::string> renderTemplate(std::string_view text, const std::string &file, const Values &values);

// Replaces every name in the expression that `values` knows with its number. The manifest stores `grid` as an
// expression without these names, so the launcher needs only the lengths.
Result<Expression> bindKnownNames(const Expression &expression, const Values &values);

} // namespace nsa
