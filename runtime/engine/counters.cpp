#include "runtime/engine/counters.h"

namespace nsa {

void Counters::add(const PlanTimes &times) {
  lookupMs += times.lookupMs;
  renderMs += times.renderMs;
  compileMs += times.compileMs;
  tuneMs += times.tuneMs;
  loadMs += times.loadMs;
}

} // namespace nsa
