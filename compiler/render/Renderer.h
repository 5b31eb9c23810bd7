// Replaces each placeholder `${name}` in a hand-scheduled template with the value of that name. The text of a template
// has no loops and no conditions for the renderer to evaluate.
// Thread-safety: renderTemplate and bindKnownNames are pure functions.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "compiler/render/Values.h"
#include "runtime/base/expression.h"
#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

// renderTemplate fails if a placeholder has no closing brace or an unknown name. `file` is the template's file name,
// which errors show.
Result<std::string> renderTemplate(std::string_view text, const std::string &file, const Values &values);

// Replaces each name in the expression by its number, if `values` has a number for the name. The compiler applies
// bindKnownNames to the `grid` expressions in the manifest, so the launcher has to fill in only the lengths of a call.
Result<Expression> bindKnownNames(const Expression &expression, const Values &values);

} // namespace nsa
