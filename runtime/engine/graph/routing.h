// Applies measured thresholds to an operator before the operator's kernels are looked up. A threshold is the stored
// result of a measurement that compared two ways to compute the same result (routes.h). The thresholds decide which of
// the allowed shortcuts (pipeline.h, Route) are taken, and how many programs share the keys of one query in decode,
// or whether the kernel `decode_step` does the step.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/engine/choices/routes.h"
#include "runtime/engine/graph/pipeline.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

struct Routing {
  Spec spec; // `keySplits`, `dqSlots` and `decodeStep` are set
  Maxima maxima;
  uint8_t routes = 0;                // the shortcuts that are taken
  std::optional<StoredRoute> dense;  // the measured threshold for dense attention in the place of selection
  std::optional<StoredRoute> splits; // the measured number of programs that share keys, or kTakesStep, if it counts
  std::optional<StoredRoute> slots;  // the measured threshold of the route kSlotsRoute
  bool forcesDq = false;             // RouteRules::forceVariant names the way of this route

  bool forcesStep = false; // RouteRules::forceVariant names `decode_step`

  // Returns whether the rule or a threshold takes the kernel `decode_step`. If the kernel cannot be had, the kernels
  // that it replaces serve.
  bool mayAvoidStep() const { return spec.decodeStep && !forcesStep; }
  std::vector<Step> steps() const { return stepsOf(spec, maxima, routes); }
};

using FindRoute = std::function<std::optional<StoredRoute>(const std::string &family, const std::string &name)>;
// Returns the routing of an operator in an engine with the given rules. `find` returns the stored thresholds of the
// engine's device. An empty `find` stands for a device without measured thresholds.
Routing routingOf(const Spec &spec, const Maxima &maxima, const RouteRules &rules, const FindRoute &find = nullptr);

} // namespace nsa
