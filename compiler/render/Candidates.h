// The search space of a template for one problem and target: the product of its choices, cut by `require`
// and by the target's limits, cheapest predicted first. The order is a pure function of the inputs.
// Thread-safety: pure functions.
#pragma once

#include "compiler/render/TemplateHeader.h"
#include "compiler/render/Values.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nsa {

// What a block may use at most.
struct ResourceLimits {
  int64_t threads = INT64_MAX;
  int64_t sharedBytes = INT64_MAX;
};

struct TemplateCandidate {
  Values values;                             // everything a hole may name
  std::map<std::string, std::string> config; // the choices
  std::string configText;                    // formatValues(config)
  int64_t cost = 0;
  int64_t threads = 1;
  int64_t sharedBytes = 0; // of a hand-scheduled template
};

// `given` holds the problem's fixed values and the driver's; `pinned` narrows choices to one value each.
// Ascending cost, then config text. Never empty: with nothing admissible the error (kUnsupported) names the
// line that removed the last candidates, and its values.
Result<std::vector<TemplateCandidate>> enumerateCandidates(const TemplateHeader &header, const Values &given,
                                                           const std::map<std::string, std::string> &pinned,
                                                           const ResourceLimits &limits);

} // namespace nsa
