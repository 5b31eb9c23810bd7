#include "compiler/driver/Catalog.h"

#include "compiler/render/TileHeader.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <tuple>

namespace nsa {

namespace {

// An error if the request has a value that the template does not declare. The template would ignore the value, and the
// kernel would be wrong.
Status checkDeclared(const TemplateHeader &header, const CompilerRequest &request, const Values &given) {
  for (const auto &[name, text] : request.fixed) {
    if (request.program && name == "dtype")
      continue; // the element type of tensors, also where no expression asks for it
    const auto found = std::ranges::find(header.fixed, name, &TemplateHeader::Fixed::name);
    Result<bool> isNeeded = found == header.fixed.end() ? Result<bool>(false) : found->isNeeded(given);
    if (!isNeeded)
      return isNeeded.status();
    if (!*isNeeded)
      return Status::invalid(name, text,
                             request.program ? "program " + header.name + " does not declare this value as fixed"
                                             : "template " + header.name +
                                                   " does not declare this value as fixed for operator " + request.op);
  }
  return Status::ok();
}

// Whether the template has every choice that the request pins.
bool hasChoices(const TemplateHeader &header, const std::map<std::string, std::string> &config) {
  return std::all_of(config.begin(), config.end(), [&](const auto &pinned) {
    return std::any_of(header.choices.begin(), header.choices.end(),
                       [&](const TemplateHeader::Choice &choice) { return choice.name == pinned.first; });
  });
}

bool servesTarget(const TemplateHeader &header, const Target &target) {
  return header.targets.empty() || std::any_of(header.targets.begin(), header.targets.end(),
                                               [&](const std::string &word) { return target.matches(word); });
}

} // namespace

const Result<Catalog> &Catalog::embedded() {
  static const Result<Catalog> &catalog = *new Result<Catalog>(read(TemplateFiles::embedded()));
  return catalog;
}

Result<Catalog> Catalog::read(const TemplateFiles &files) {
  Catalog catalog;
  catalog.tiles = std::make_unique<TileFiles>(files);
  NSA_ASSIGN_OR_RETURN(const std::vector<TileFiles::Program> programs, catalog.tiles->readTemplates());
  for (const TileFiles::Program &program : programs) {
    Result<TemplateHeader> header = readTileHeader(*program.tree);
    if (!header)
      return header.status();
    NSA_RETURN_IF_ERROR(catalog.add({program.file, std::move(*header), program.tree, program.imports}));
  }
  for (const TemplateFile &file : files.files()) {
    if (!file.path.starts_with("cuda/"))
      continue;
    Result<TemplateHeader> header = readCudaHeader(file.text, file.path, files.finder());
    if (!header)
      return header.status();
    NSA_RETURN_IF_ERROR(catalog.add({&file, std::move(*header), nullptr, {}}));
  }
  return catalog;
}

Result<Catalog> Catalog::ofProgram(const TemplateFiles &files, const ProgramSource &program) {
  Catalog catalog;
  catalog.tiles = std::make_unique<TileFiles>(files);
  NSA_ASSIGN_OR_RETURN(const TileFiles::Program read, catalog.tiles->readProgram(program));
  Result<TemplateHeader> header = readTileHeader(*read.tree, TileHeaderOf::kProgram);
  if (!header)
    return header.status();
  NSA_RETURN_IF_ERROR(catalog.add({read.file, std::move(*header), read.tree, read.imports}));
  return catalog;
}

Status Catalog::add(Template entry) {
  for (const std::string &word : entry.header.targets)
    if (!Target::knowsWord(word))
      return templateError(entry.header.targetsPlace, "unknown target '" + word + "'");
  for (const Template &other : templates)
    if (other.header.name == entry.header.name)
      return templateError({entry.file->path, 1}, "the name " + entry.header.name + " is taken by " + other.file->path);
  templates.push_back(std::move(entry));
  return Status::ok();
}

Result<std::vector<const Template *>> Catalog::servers(const CompilerRequest &request) const {
  if (!request.serves) {
    const Template &program = templates.front();
    if (!servesTarget(program.header, *request.target))
      return Status::error(ErrorCode::kUnsupported,
                           "program " + program.header.name + " is not for the target " +
                               std::string(request.target->name),
                           "its targets are: " + joined(program.header.targets, ", "));
    return std::vector<const Template *>{&program};
  }
  const std::string &op = request.op;
  std::vector<const Template *> result;
  std::string known;
  for (const Template &entry : templates) {
    known.append(known.empty() ? "" : ", ").append(entry.header.name);
    if (!request.templateName.empty() && entry.header.name != request.templateName)
      continue;
    if (entry.header.serves(*request.serves) && servesTarget(entry.header, *request.target))
      result.push_back(&entry);
    else if (!request.templateName.empty())
      return Status::invalid("template", request.templateName,
                             "does not serve operator " + op + " on target " + std::string(request.target->name));
  }
  if (!result.empty())
    return result;
  if (!request.templateName.empty())
    return Status::invalid("template", request.templateName, "is no template", "there are: " + known);
  return Status::error(ErrorCode::kUnsupported,
                       "no template serves operator " + op + " on target " + std::string(request.target->name),
                       "the templates are: " + (known.empty() ? "none" : known));
}

Result<std::vector<Selection>> Catalog::candidates(const CompilerRequest &request) const {
  Result<std::vector<const Template *>> serving = servers(request);
  if (!serving)
    return serving.status();
  Result<Values> given = request.values();
  if (!given)
    return given.status();

  std::vector<Selection> selections;
  // The reason why nothing is left. It is the reason of the first template, unless a later template is the first that
  // has the pinned choices.
  Status reason;
  bool isMeant = false;
  for (const Template *source : *serving) {
    Status refusal = checkDeclared(source->header, request, *given);
    if (refusal.isOk()) {
      Result<std::vector<TemplateCandidate>> offered =
          enumerateCandidates(source->header, *given, request.config, request.target->limits());
      if (!offered && offered.status().code() == ErrorCode::kCompileFailed)
        return offered.status();
      if (offered)
        for (TemplateCandidate &candidate : *offered)
          selections.push_back({source, std::move(candidate)});
      else
        refusal = offered.status();
    }
    if (refusal.isOk())
      continue;
    const bool knowsConfig = hasChoices(source->header, request.config);
    if (reason.isOk() || (knowsConfig && !isMeant)) {
      reason = refusal;
      isMeant = knowsConfig;
    }
  }
  if (selections.empty())
    return reason;
  std::sort(selections.begin(), selections.end(), [](const Selection &a, const Selection &b) {
    return std::tie(a.candidate.cost, a.source->header.name, a.candidate.configText) <
           std::tie(b.candidate.cost, b.source->header.name, b.candidate.configText);
  });
  return selections;
}

} // namespace nsa
