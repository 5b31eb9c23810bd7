#include "runtime/engine/graph/routing.h"

#include "runtime/base/key_splits.h"

#include <algorithm>

namespace nsa {

Routing routingOf(const Spec &spec, const Maxima &maxima, const RouteRules &rules, const FindRoute &find) {
  const auto measured = [&](const std::string &family, const std::string &name) {
    return rules.ignoreThresholds || !find ? std::nullopt : find(family, name);
  };
  Routing routing{.spec = spec,
                  .maxima = maxima,
                  .routes = routesOf(spec, maxima),
                  .dense = {},
                  .splits = {},
                  .slots = {},
                  .forcesDq = false,
                  .forcesStep = forcesStep(spec, maxima, rules.forceVariant)};
  routing.spec.decodeStep = routing.forcesStep;
  // The splits of a plan with batch_invariant follow from the shape of its heads alone.
  const bool shares = sharesKeys(spec, maxima) && !routing.spec.decodeStep && !spec.batchInvariant;
  if (shares)
    routing.spec.keySplits = rules.decodeSplits;
  // Decode's few queries have no other kernel for it, and `sel` alone attends whatever list it is given.
  if (definitionOf(spec.op).isForward() && routing.routes & kSelIsDense) {
    const std::vector<Step> steps = stepsOf(spec, maxima, /*routes=*/0);
    const Spec &sel =
        std::ranges::find_if(steps, [](const Step &step) { return step.node->shortcut == kSelIsDense; })->spec;
    if (isAsMeasured(sel, maxima))
      routing.dense = measured(routeFamily(sel), std::string(kDenseRoute));
    if (routing.dense && !densePays(*routing.dense, spec, maxima))
      routing.routes &= static_cast<uint8_t>(~kSelIsDense);
  }
  if (shares && routing.spec.keySplits == 0) {
    routing.splits = measured(splitsFamily(spec), splitsRoute(spec, maxima));
    const bool mayStep = rules.mayStep && rules.forceVariant.empty() && stepServes(spec, maxima);
    const auto takesStep = [](const StoredRoute &route) { return route.threshold == kTakesStep; };
    if (routing.splits && (mayStep ? !comparesStep(*routing.splits) : takesStep(*routing.splits)))
      routing.splits.reset(); // it says nothing of the kernels that may serve
    routing.spec.decodeStep = mayStep && (!routing.splits || takesStep(*routing.splits));
    if (!routing.spec.decodeStep && routing.splits && routing.splits->threshold != StoredRoute::kNever)
      routing.spec.keySplits =
          static_cast<int32_t>(std::clamp<int64_t>(routing.splits->threshold, 1, KeySplits::kMost));
  }
  if (definitionOf(spec.op).isGradient() && spec.hasLists()) {
    Spec dq = spec;
    dq.op = Operator::kSelDq;
    routing.forcesDq = isWayOfDq(rules.forceVariant);
    // The measurement says which way is faster, and not whether this spec may take slots.
    if (!routing.forcesDq && mayTakeSlots(spec, maxima) && isAsMeasured(dq, maxima))
      routing.slots = measured(routeFamily(dq), std::string(kSlotsRoute));
    routing.spec.dqSlots = routing.forcesDq ? rules.forceVariant == kSlotsVariant
                           : routing.slots  ? slotsPay(*routing.slots, maxima)
                                            : takesSlots(spec, maxima);
  }
  return routing;
}

} // namespace nsa
