// Fills the `${name}` holes of a template, line for line: line n of the result comes from line n of the
// template, so every later error can name the template's own line. The text has no control flow.
// Thread-safety: pure functions.
#pragma once

#include "compiler/render/Values.h"
#include "runtime/base/expression.h"
#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

// `file` names the template in errors.
Result<std::string> renderTemplate(std::string_view text, const std::string &file, const Values &values);

// An expression with every name known to `values` replaced by its number: what the manifest keeps of `grid`, so
// that the launcher needs the lengths only.
Result<Expression> bindKnownNames(const Expression &expression, const Values &values);

} // namespace nsa
