// Replaces each placeholder `${name}` in a template with the value of that name, and each line `//! part NAME` with the
// lines of the file tile/part/NAME.mlir, whose placeholders are replaced too. The text of a template has no loops and
// no conditions for the renderer to evaluate. Thread-safety: renderTemplate and bindKnownNames are pure functions.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "compiler/render/Values.h"
#include "runtime/base/expression.h"
#include "runtime/base/status.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct RenderedTemplate {
  std::string text;
  std::vector<TemplatePlace> places; // for each line of the text, the line from which it comes
  std::set<std::string> parts;       // the paths of the parts in the text
};

// renderTemplate fails if a placeholder has no closing brace or an unknown name, or if `find` does not find a part.
// `file` is the template's file name. Errors name this file, or the file of the part.
Result<RenderedTemplate> renderTemplate(std::string_view text, const std::string &file, const Values &values,
                                        const FindTemplateText &find = {});

// Replaces each name in the expression by its number, if `values` has a number for the name. The compiler applies
// bindKnownNames to the `grid` expressions in the manifest, so the launcher has to fill in only the lengths of a call.
Result<Expression> bindKnownNames(const Expression &expression, const Values &values);

} // namespace nsa
