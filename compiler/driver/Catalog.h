// The templates with their parsed headers, and the candidates that the templates offer for a request.
// Thread-safety: a Catalog is immutable after construction.
#pragma once

#include "compiler/driver/Request.h"
#include "compiler/driver/TemplateFiles.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/render/Candidates.h"
#include "compiler/render/TemplateHeader.h"

#include <memory>
#include <vector>

namespace nsa {

struct Template {
  const TemplateFile *file;
  TemplateHeader header;
  const language::SyntaxTree *tree = nullptr; // of a tile program
  std::vector<const TemplateFile *> imports;  // the libraries of a tile program, and what they import
};

// One candidate for a request: a template together with one value for each of its choices.
struct Selection {
  const Template *source;
  TemplateCandidate candidate;
};

class Catalog {
public:
  // The catalog of the templates that are embedded in the library.
  static const Result<Catalog> &embedded();
  // Parses the headers of all templates. `files` must outlive the catalog. If one template does not parse, the whole
  // result is an error, even if the other templates would suffice: otherwise a kernel variant could disappear
  // unnoticed.
  static Result<Catalog> read(const TemplateFiles &files);
  // The catalog that has one program alone. `files` has the libraries that the program does not bring along, and must
  // outlive the catalog.
  static Result<Catalog> ofProgram(const TemplateFiles &files, const ProgramSource &program);

  // Returns the candidates of a request, sorted by predicted time with the fastest first; candidates with equal times
  // are sorted by template name, then by config text. If no template offers a candidate, candidates() returns an error
  // instead of an empty list. The error says why one of the templates offers no candidate. If there are templates that
  // have every choice named in the request, the error is about the first of these templates. Otherwise the error is
  // about the first of all templates.
  Result<std::vector<Selection>> candidates(const CompilerRequest &request) const;

  // The tree of a library of tile programs; nullptr: there is none of this name.
  const language::SyntaxTree *library(std::string_view name) const { return tiles->library(name); }

private:
  Status add(Template entry);
  Result<std::vector<const Template *>> servers(const CompilerRequest &request) const;

  std::unique_ptr<TileFiles> tiles;
  std::vector<Template> templates;
};

} // namespace nsa
