// Lists the candidates of a template for one problem and one target: all combinations of values of the template's
// choices, except those that a `require` line or a limit of the target excludes. Candidates are sorted by predicted
// time, the fastest first. The order depends only on the template, the problem and the target.
// Thread-safety: enumerateCandidates is a pure function.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "compiler/render/Values.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nsa {

// The limits that a target sets for one thread block, and for the blocks that share a multiprocessor.
struct ResourceLimits {
  int64_t threads = INT64_MAX;
  int64_t sharedBytes = INT64_MAX;
  int64_t residentBlocks = INT64_MAX, residentThreads = INT64_MAX; // of a multiprocessor
};

struct TemplateCandidate {
  Values values;                             // all names that a hole may use
  std::map<std::string, std::string> config; // the choices
  std::string configText;                    // formatValues(config)
  int64_t cost = 0;
  int64_t threads = 1;
  int64_t residentBlocks = 0; // that a multiprocessor shall hold at once; 0: as many as ptxas leaves room for
  int64_t sharedBytes = 0;    // of a hand-scheduled template; 0 for a tile program
};

// What excluded the last candidates: a line of the template, and in words what it asks for.
struct TemplateExclusion {
  TemplatePlace place;
  std::string rule;
};

// `given` holds the values of the problem and the values of the target. `pinned` fixes values in advance: it maps the
// names of some of the template's choices to the only values that the candidates may have. The list of candidates is
// sorted by ascending cost, then by config text, and is never empty. If no candidate is admissible, the error
// (kUnsupported) names the template line that excluded the last remaining candidates, and the values in that line;
// `excluding` then gets the line.
Result<std::vector<TemplateCandidate>> enumerateCandidates(const TemplateHeader &header, const Values &given,
                                                           const std::map<std::string, std::string> &pinned,
                                                           const ResourceLimits &limits,
                                                           TemplateExclusion *excluding = nullptr);

} // namespace nsa
