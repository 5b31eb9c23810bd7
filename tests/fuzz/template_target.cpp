// The header of a template, of either kind, and the candidates that it spans. Values of the problem are drawn from the
// end of the input, which a template's code ends with.
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/language/parsed.h"

#include "compiler/render/Candidates.h"
#include "compiler/render/Renderer.h"
#include "compiler/render/TileHeader.h"

#include <algorithm>
#include <set>

namespace nsa::fuzz {
namespace {

constexpr int64_t kMostCombinations = 64; // to stay fast
constexpr ResourceLimits kLimits{.threads = 1024, .sharedBytes = 227 * 1024};

void checkHeader(const TemplateHeader &header) {
  expect(!header.name.empty() && !header.operators.empty(), "a template has a name and operators");
  expect(header.threads.isPresent() && header.grid[0].isPresent(), "required lines are there");
  std::set<std::string> names;
  const auto declare = [&](const std::string &name) {
    expect(!name.empty() && names.insert(name).second, "every name means one thing");
  };
  for (const TemplateHeader::Fixed &fixed : header.fixed)
    declare(fixed.name);
  for (const TemplateHeader::Choice &choice : header.choices) {
    declare(choice.name);
    expect(!choice.values.empty() &&
               std::set<int64_t>(choice.values.begin(), choice.values.end()).size() == choice.values.size(),
           "a choice has values, each once");
  }
  for (const TemplateHeader::Step &step : header.steps)
    if (!step.isRequire)
      declare(step.name);
  const bool isTile = header.kind == TemplateKind::kTile;
  expect(isTile ? header.params.empty() && !header.shared.isPresent() : !header.params.empty(),
         "arguments are those of hand-scheduled templates");
}

void checkCandidates(const TemplateHeader &header, std::string_view input) {
  int64_t combinations = 1;
  for (const TemplateHeader::Choice &choice : header.choices)
    combinations = std::min<int64_t>(kMostCombinations + 1, combinations * static_cast<int64_t>(choice.values.size()));
  if (combinations > kMostCombinations)
    return;
  Draw draw(input);
  Values given;
  for (const TemplateHeader::Fixed &fixed : header.fixed)
    given.set(fixed.name, draw.number());
  for (const DriverValue &value : driverValues())
    given.set(std::string(value.name), value.isNumber ? std::to_string(draw.byte()) : "bf16");
  given.set("op", static_cast<int64_t>(header.operators.front()));

  const auto candidates = enumerateCandidates(header, given, {}, kLimits);
  if (!candidates) {
    expect(!candidates.status().toString().empty(), "no candidates have a reason");
    return;
  }
  expect(!candidates->empty() && static_cast<int64_t>(candidates->size()) <= combinations,
         "there are no more candidates than combinations");
  const TemplateCandidate *before = nullptr;
  for (const TemplateCandidate &candidate : *candidates) {
    expect(candidate.threads >= 1 && candidate.threads <= kLimits.threads && candidate.sharedBytes >= 0 &&
               candidate.sharedBytes <= kLimits.sharedBytes,
           "candidates keep the limits");
    expect(!before || before->cost < candidate.cost ||
               (before->cost == candidate.cost && before->configText < candidate.configText),
           "candidates stand in order, each once");
    const auto pinned = enumerateCandidates(header, given, candidate.config, kLimits);
    expect(pinned && pinned->size() == 1 && pinned->front().configText == candidate.configText,
           "a candidate's choices name it alone");
    before = &candidate;
  }
  for (const TemplateHeader::Line &axis : header.grid)
    (void)bindKnownNames(axis.expression, candidates->front().values);
  (void)renderTemplate(input, header.file, candidates->front().values);
}

Result<TemplateHeader> readTile(std::string_view input) {
  const language::Parsed parsed(std::string(input), "fuzz.tile");
  if (parsed.diagnostics.hasErrors())
    return templateError(parsed.diagnostics);
  return parsed.tree->kernel ? readTileHeader(*parsed.tree) : templateError({"fuzz.tile", 1}, "a library");
}

void runTemplate(std::string_view input) {
  for (const Result<TemplateHeader> &header : {readTile(input), readCudaHeader(input, "fuzz.cu")}) {
    if (!header) {
      expect(header.status().error().value.starts_with("fuzz."), "what is refused names file and line");
      continue;
    }
    checkHeader(*header);
    checkCandidates(*header, input);
  }
}

const Registration kTemplate({"template", runTemplate});

} // namespace
} // namespace nsa::fuzz
