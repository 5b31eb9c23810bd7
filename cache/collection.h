// Which kernels make room: those that no choice names, those that nobody used for long, and of the others the least
// recently used until the file is small enough. A kernel that a tuned choice names is paid for and stays, unless asked.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/rows.h"
#include "cache/sqlite.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa {

struct CollectionRules {
  int64_t maxBytes = 0;               // 0: no limit
  std::optional<int64_t> maxIdleDays; // whoever was last used more days ago goes
  bool unnamed = true;                // what no choice names goes whatever the limits
  bool tuned = false;                 // kernels of tuned choices may go, too
  std::string keep;                   // this one stays
};

struct CollectedKernel {
  KernelSummary kernel;
  int64_t lastUse = 0; // day; 0: unknown
  std::string reason;
};

struct CollectionReport {
  std::vector<CollectedKernel> removed;
  int64_t choices = 0; // that named them, removed with them
  int64_t bytesBefore = 0, bytesAfter = 0;
};

// Bytes of the pages that hold something: the file's size once it is compacted. sqlite's own code, as below.
int usedBytes(sqlite::Connection &connection, int64_t &bytes);
// Inside the caller's transaction. `day`: today.
int collect(sqlite::Connection &connection, const CollectionRules &rules, int64_t day, CollectionReport &report);

} // namespace nsa
