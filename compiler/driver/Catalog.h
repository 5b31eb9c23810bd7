// The templates with their parsed headers, and the candidates that the templates offer for a request.
// Thread-safety: a Catalog is immutable after construction.
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

// One point of the search space: a template and one value for each choice of the template.
struct Selection {
  const Template *source;
  TemplateCandidate candidate;
};

class Catalog {
public:
  // Parses the headers of all templates. `files` must outlive the catalog. A template that does not parse is an error
  // even if another template could serve, because a variant must not vanish silently.
  static Result<Catalog> read(const TemplateFiles &files);

  // Returns the candidates of a request, cheapest predicted first; equal costs are ordered by template name, then by
  // config text. If no template offers a candidate, candidates() returns an error and never an empty list. The error
  // comes from the first template that has the pinned choices, or else from the first template.
  Result<std::vector<Selection>> candidates(const CompilerRequest &request) const;

private:
  Result<std::vector<const Template *>> servers(const CompilerRequest &request) const;

  std::vector<Template> templates;
};

} // namespace nsa
