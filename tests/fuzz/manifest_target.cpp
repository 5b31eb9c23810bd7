// A kernel's manifest, as it is stored beside the binary.
#include "tests/fuzz/fuzz_target.h"

#include "runtime/base/manifest.h"

#include <set>

namespace nsa::fuzz {
namespace {

bool isEqual(const Manifest &a, const Manifest &b) {
  return a.entry == b.entry && a.templateName == b.templateName && a.op == b.op && a.target == b.target &&
         a.fixed == b.fixed && a.config == b.config && a.revision == b.revision && a.params == b.params &&
         a.grid[0] == b.grid[0] && a.grid[1] == b.grid[1] && a.grid[2] == b.grid[2] && a.threads == b.threads &&
         a.sharedBytes == b.sharedBytes && a.scratchBytes == b.scratchBytes && a.evidence == b.evidence;
}

void checkRules(const Manifest &manifest) {
  for (const std::string *word :
       {&manifest.entry, &manifest.templateName, &manifest.op, &manifest.target, &manifest.revision})
    expect(!word->empty() && word->find_first_of(" \t\r\n") == std::string::npos, "names are words");
  expect(manifest.threads >= 1 && manifest.sharedBytes >= 0 && manifest.scratchBytes >= 0,
         "sizes are no less than none");
  std::set<std::string> names;
  int slots = 0;
  for (const ManifestParam &param : manifest.params) {
    expect(names.insert(param.name).second, "a parameter's name stands once");
    const bool isView = param.kind == ManifestParam::Kind::kView;
    expect(isView ? param.rank >= 1 && param.rank <= 5 : param.rank == 0 && param.dtype.empty(), "views have a rank");
    expect(!param.isPaged() || (isView && param.rank >= 2 && param.pageRows >= 1), "pages have rows and sequences");
    slots += param.slots();
  }
  expect(manifest.slotCount() == slots, "the slots are those of the parameters");
}

void runManifest(std::string_view input) {
  const Result<Manifest> parsed = Manifest::parse(input);
  if (!parsed) {
    expect(parsed.status().code() == ErrorCode::kInvalidArgument && !parsed.status().error().rule.empty(),
           "what is refused names the rule");
    return;
  }
  checkRules(*parsed);
  const std::string text = parsed->serialize();
  const Result<Manifest> again = Manifest::parse(text);
  expect(again && isEqual(*again, *parsed), "what was printed is read as the same");
  expect(again->serialize() == text, "what was printed is printed as the same");
  for (const std::map<std::string, std::string> *values : {&parsed->fixed, &parsed->config, &parsed->evidence}) {
    const auto back = parseValues(formatValues(*values));
    expect(back && *back == *values, "values that were printed are read as the same");
  }
}

const Registration kManifest({"manifest", runManifest});

} // namespace
} // namespace nsa::fuzz
