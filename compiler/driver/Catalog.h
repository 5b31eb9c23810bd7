// The templates with their parsed headers, and the candidates that they offer for a request.
// Thread-safety: immutable after construction.
#pragma once

#include "compiler/driver/Request.h"
#include "compiler/driver/TemplateFiles.h"
#include "compiler/render/Candidates.h"
#include "compiler/render/TemplateHeader.h"

#include <vector>

namespace nsa {

struct Template {
  const TemplateFile *file;
  TemplateHeader header;
};

// One point of the search space: a template and one value for each of its choices.
struct Selection {
  const Template *source;
  TemplateCandidate candidate;
};

class Catalog {
public:
  // Parses all headers. `files` must outlive the catalog. A template that does not parse is an error even if another
  // template could serve, because a variant must not vanish silently.
  static Result<Catalog> read(const TemplateFiles &files);

  // The candidates, cheapest predicted first; equal costs are ordered by template name, then by config text. Never
  // empty: if no template offers a candidate, the result is an error. It comes from the first template that has the
  // pinned choices, or else from the first template.
  Result<std::vector<Selection>> candidates(const CompilerRequest &request) const;

private:
  Result<std::vector<const Template *>> servers(const CompilerRequest &request) const;

  std::vector<Template> templates;
};

} // namespace nsa
