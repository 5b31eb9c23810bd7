// Converts the candidates that a tuning did not measure to rows of the evidence that is stored with the tuned choice,
// and back. A tuning may leave out hundreds of candidates, so all candidates that were left out for the same reason
// share one row, which gives the number of these candidates.
// Thread-safety: pure functions.
#pragma once

#include "autotune/tuner/tuner.h"
#include "cache/rows/rows.h"

#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// Returns one row for each reason why candidates were not measured, in the order in which the reasons first appear in
// `report`. In each returned row, the outcome is "pruned", the template and the config are empty, and the detail is a
// text such as "41 candidates not compiled: ...".
std::vector<Measurement> prunedRows(const TuneReport &report);

struct PrunedCandidates {
  size_t count = 0;
  std::string reason;
};
// Reads the field `detail` of a row with the outcome "pruned". If the detail does not begin with a number of
// candidates, the count is 1.
PrunedCandidates parsePruned(std::string_view detail);

} // namespace nsa
