// How evidence keeps the candidates that a tuning never measured: not one row each, of which there may be hundreds, but
// one for each reason, which says how many there were.
// Thread-safety: pure functions.
#pragma once

#include "autotune/tuner.h"
#include "cache/rows.h"

#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// In the order in which the reasons come up: template and config empty, the detail "41 candidates not compiled: ...".
std::vector<Measurement> prunedRows(const TuneReport &report);

struct PrunedCandidates {
  size_t count = 0;
  std::string reason;
};
// What the detail of an outcome "pruned" says. Without a number at its beginning it speaks of one candidate.
PrunedCandidates parsePruned(std::string_view detail);

} // namespace nsa
