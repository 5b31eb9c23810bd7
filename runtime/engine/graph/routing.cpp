#include "runtime/engine/graph/routing.h"

#include "runtime/base/key_splits.h"

#include <algorithm>

namespace nsa {

Routing routingOf(const Spec &spec, const Maxima &maxima, const FindRoute &find) {
  Routing routing{.spec = spec, .maxima = maxima, .routes = routesOf(spec, maxima), .dense = {}, .splits = {}};
  // Decode's few queries have no other kernel for it, and `sel` alone attends whatever list it is given.
  if (definitionOf(spec.op).isForward() && routing.routes & kSelIsDense) {
    const std::vector<Step> steps = stepsOf(spec, maxima, /*routes=*/0);
    const Spec &sel =
        std::ranges::find_if(steps, [](const Step &step) { return step.node->shortcut == kSelIsDense; })->spec;
    if (isAsMeasured(sel, maxima))
      routing.dense = find(routeFamily(sel), std::string(kDenseRoute));
    if (routing.dense && !densePays(*routing.dense, spec, maxima))
      routing.routes &= static_cast<uint8_t>(~kSelIsDense);
  }
  if (const std::string name = splitsRoute(spec, maxima); !name.empty() && spec.keySplits == 0) {
    routing.splits = find(splitsFamily(spec), name);
    if (routing.splits && routing.splits->threshold != StoredRoute::kNever)
      routing.spec.keySplits =
          static_cast<int32_t>(std::clamp<int64_t>(routing.splits->threshold, 1, KeySplits::kMost));
  }
  return routing;
}

} // namespace nsa
