// Copies the choices of one file into another file, with the kernels that the choices name, and copies the routes. A
// tuned choice replaces an untuned choice of the same problem and device. If the two files have different choices of
// one problem that are both tuned or both untuned, the caller says with `prefer` which choice stays. A choice whose
// kernel is missing or damaged is replaced by any other choice of its problem.
// Thread-safety: none, like the connections.
#pragma once

#include "cache/database/sqlite.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

enum class Prefer { kDestination, kSource };

// A conflict: two different measured choices of one problem, or two different thresholds of one route.
struct MergeConflict {
  std::string key;                 // problem and device of a choice; family, device and name of a route
  std::string destination, source; // the kernels or thresholds of the two files
  bool tookSource = false;
};

struct MergeReport {
  int64_t kernels = 0; // how many were written
  int64_t addedChoices = 0, replacedChoices = 0, keptChoices = 0;
  int64_t addedRoutes = 0, replacedRoutes = 0, keptRoutes = 0;
  std::vector<MergeConflict> conflicts;
  std::vector<std::string> damaged; // kernels of the source that were left out, with the choices that name them
  std::vector<std::string> lost;    // kernels that the destination lacks or has damaged, so that their choices gave way
};

// Merges the choices and routes of `from`, and the kernels that they name, into `to`, within the caller's transaction
// on `to`. `day` is stored as the day on which the copied kernels were last used. Returns sqlite's own code.
int mergeRows(sqlite::Connection &to, sqlite::Connection &from, Prefer prefer, int64_t day, MergeReport &report);

} // namespace nsa
