#include "runtime/base/key_splits.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/report/describe.h"

namespace nsa {

RouteDescription describeRoute(const Routing &routing, const Step &step) {
  const Spec &spec = routing.spec;
  const Maxima &maxima = routing.maxima;
  const std::optional<StoredRoute> &measured = routing.dense;
  RouteDescription route{.part = std::string(roleName(step.role, spec.op)), .source = "exact"};
  if (step.node->sharesKeys) {
    route.splits = KeySplits::make(spec, maxima).counts;
    route.splitsSource = spec.keySplits == 0 ? routing.splits ? "rule, as measured" : "rule"
                         : routing.splits    ? routing.splits->name
                                             : "decode_splits";
  }
  if (!(routesOf(spec, maxima) & step.node->shortcut))
    return route;
  route.name = "dense";
  if (step.node->shortcut == kWinIsDense) {
    route.threshold = spec.window;
    route.why = "up to `window` keys the window holds all of them";
    return route;
  }
  route.threshold = int64_t{spec.selCount} * spec.selBlock;
  route.why = "up to sel_count * sel_block keys every block is selected";
  if (!measured)
    return route;
  route.source = kDenseRoute;
  route.threshold = measured->threshold;
  if (step.route) {
    route.why += ", and dense attention pays up to the threshold, as measured";
  } else {
    route.name = "selection";
    route.why += ", but dense attention, which would be the same, pays " +
                 std::string(measured->threshold == StoredRoute::kNever ? "never" : "up to the threshold alone") +
                 ", as measured";
  }
  return route;
}

} // namespace nsa
