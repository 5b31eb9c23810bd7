// The search space of a template for one problem and one target: the product of its choices, without the points that a
// `require` line or a limit of the target excludes. Candidates are ordered by predicted cost, cheapest first. The order
// is a pure function of the inputs.
// Thread-safety: pure functions.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "compiler/render/Values.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nsa {

// The limits of a block of threads.
struct ResourceLimits {
  int64_t threads = INT64_MAX;
  int64_t sharedBytes = INT64_MAX;
};

struct TemplateCandidate {
  Values values;                             // all names that a hole may use
  std::map<std::string, std::string> config; // the choices
  std::string configText;                    // formatValues(config)
  int64_t cost = 0;
  int64_t threads = 1;
  int64_t sharedBytes = 0; // of a hand-scheduled template; 0 for a tile program
};

// `given` holds the fixed values of the problem and the values of the target. `pinned` gives choices one value each.
// The result is ascending by cost, then by config text, and never empty. If nothing is admissible, the error
// (kUnsupported) names the line that removed the last candidates, and its values.
Result<std::vector<TemplateCandidate>> enumerateCandidates(const TemplateHeader &header, const Values &given,
                                                           const std::map<std::string, std::string> &pinned,
                                                           const ResourceLimits &limits);

} // namespace nsa
