// Takes the choices of one file into another, with the kernels they name, and its routes. A tuned choice beats one that
// was never measured; of two that were measured alike the caller says which stays. One whose kernel is missing or
// damaged gives way to any. Thread-safety: none, as the connections.
#pragma once

#include "cache/sqlite.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

enum class Prefer { kDestination, kSource };

// Two measured answers to one question.
struct MergeConflict {
  std::string key;                 // problem and device of a choice; family, device and name of a route
  std::string destination, source; // kernels or thresholds
  bool tookSource = false;
};

struct MergeReport {
  int64_t kernels = 0; // written
  int64_t addedChoices = 0, replacedChoices = 0, keptChoices = 0;
  int64_t addedRoutes = 0, replacedRoutes = 0, keptRoutes = 0;
  std::vector<MergeConflict> conflicts;
  std::vector<std::string> damaged; // kernels of the source that were left out, with the choices that name them
  std::vector<std::string> lost;    // kernels that the destination lacks or has damaged, whose choices gave way
};

// Inside the caller's transaction on `to`; sqlite's own code. `day`: when the kernels count as used.
int mergeRows(sqlite::Connection &to, sqlite::Connection &from, Prefer prefer, int64_t day, MergeReport &report);

} // namespace nsa
