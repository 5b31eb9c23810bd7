// The templates with their headers read, and the candidates they offer for a request.
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

// One point of the search space.
struct Selection {
  const Template *source;
  TemplateCandidate candidate;
};

class Catalog {
public:
  // `files` must outlive the catalog. A template that does not parse is an error even when another would serve: a
  // variant must not vanish silently.
  static Result<Catalog> read(const TemplateFiles &files);

  // Cheapest predicted first; ties by template name, then config text. Never empty: when no template offers
  // anything the error is that of the first one which knows the pinned choices, else of the first one.
  Result<std::vector<Selection>> candidates(const CompilerRequest &request) const;

private:
  Result<std::vector<const Template *>> servers(const CompilerRequest &request) const;

  std::vector<Template> templates;
};

} // namespace nsa
