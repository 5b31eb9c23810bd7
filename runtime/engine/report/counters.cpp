#include "runtime/engine/report/counters.h"

#include "runtime/engine/graph/plan_core.h"

namespace nsa {

void Counters::add(const PlanTimes &times) {
  lookupMs += times.lookupMs;
  renderMs += times.renderMs;
  compileMs += times.compileMs;
  tuneMs += times.tuneMs;
  loadMs += times.loadMs;
}

} // namespace nsa
