#include "runtime/base/key_splits.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/report/describe.h"

#include <utility>

namespace nsa {

namespace {

// Of a kernel that computes the gradient of the queries of `sel`.
void describeWayOfDq(const Routing &routing, std::string_view way, RouteDescription &route) {
  const bool hasSlots = way == kSlotsVariant;
  route.name = way;
  route.other = hasSlots ? kQueriesVariant : kSlotsVariant;
  if (routing.forcesDq) {
    route.source = "force_variant";
    route.why = "the option names the kernel";
  } else if (const std::optional<StoredRoute> &measured = routing.slots) {
    route.source = kSlotsRoute;
    route.threshold = {kSlotsVariant, PayingSide::kFrom, measured->threshold};
    route.why = std::string("the gradient of queries is faster block by block ") +
                (measured->threshold == StoredRoute::kNever ? "at no length" : "from the threshold on") +
                ", as measured";
  } else {
    route.source = "rule";
    route.why = hasSlots ? "the heads of a small group do not fill a tile of each query"
                : mayTakeSlots(routing.spec, routing.maxima)
                    ? "the heads of a large group fill a tile of each query"
                    : "block by block, a block would not fit in shared memory, or the slots not in a chunk";
  }
}

} // namespace

RouteDescription describeRoute(const Routing &routing, const Step &step) {
  const Spec &spec = routing.spec;
  const Maxima &maxima = routing.maxima;
  const std::optional<StoredRoute> &measured = routing.dense;
  RouteDescription route{.part = std::string(roleName(step.role, spec.op)), .source = "exact"};
  if (step.node->sharesKeys) {
    route.splits = KeySplits::make(spec, maxima).counts;
    route.splitsSource = spec.batchInvariant   ? "batch_invariant"
                         : spec.keySplits == 0 ? routing.splits ? "rule, as measured" : "rule"
                         : routing.splits      ? routing.splits->name
                                               : "decode_splits";
  }
  if (const std::string_view op = operatorName(step.spec.op); isWayOfDq(op)) {
    describeWayOfDq(routing, op, route);
    return route;
  }
  if (step.role == Role::kStep) {
    route.name = kStepVariant;
    route.other = "splits";
    route.source = routing.forcesStep ? "force_variant" : routing.splits ? kSplitsRoute : "rule";
    route.why = routing.forcesStep ? "the option names the kernel"
                : routing.splits   ? "no number of splits beat it by its margin, as measured"
                                   : "one launch does the step, and no measurement found another way to be faster";
    return route;
  }
  if (!(routesOf(spec, maxima) & step.node->shortcut))
    return route;
  constexpr std::string_view kDense = "dense";
  route.name = kDense;
  if (step.node->shortcut == kWinIsDense) {
    route.other = "window";
    route.threshold = {kDense, PayingSide::kUpTo, spec.window};
    route.why = "up to `window` keys the window holds all of them";
    return route;
  }
  route.other = "selection";
  route.threshold = {kDense, PayingSide::kUpTo, int64_t{spec.selCount} * spec.selBlock};
  route.why = "up to sel_count * sel_block keys every block is selected";
  if (!measured)
    return route;
  route.source = kDenseRoute;
  route.threshold->keys = measured->threshold;
  if (step.route) {
    route.why += ", and dense attention pays up to the threshold, as measured";
  } else {
    std::swap(route.name, route.other);
    route.why += ", but dense attention, which would be the same, pays " +
                 std::string(measured->threshold == StoredRoute::kNever ? "never" : "up to the threshold alone") +
                 ", as measured";
  }
  return route;
}

} // namespace nsa
