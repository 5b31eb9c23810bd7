// What measured thresholds (routes.h) decide of an operator before its kernels are looked up: which of the exact
// shortcuts that the maxima allow are taken, and how many programs share the keys of decode's few queries.
// Thread-safety: values and pure functions.
#pragma once

#include "cache/rows.h"
#include "runtime/engine/pipeline.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

struct Routing {
  Spec spec; // with `keySplits`
  Maxima maxima;
  uint8_t routes = 0;                // of the shortcuts those that are taken
  std::optional<StoredRoute> dense;  // measured, where dense attention would be the same as selection
  std::optional<StoredRoute> splits; // measured, of programs that share keys

  std::vector<Step> steps() const { return stepsOf(spec, maxima, routes); }
  // Whether the steps may be others than without thresholds.
  bool isByThreshold() const { return routes != routesOf(spec, maxima) || spec.keySplits != 0; }
};

using FindRoute = std::function<std::optional<StoredRoute>(const std::string &family, const std::string &name)>;
Routing routingOf(const Spec &spec, const Maxima &maxima, const FindRoute &find);

} // namespace nsa
