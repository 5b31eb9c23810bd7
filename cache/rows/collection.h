// Decides which kernels are removed from a database to free disk space: kernels that no choice names, kernels that were
// not used for a long time, and then the least recently used kernels until the file is small enough. A kernel that a
// tuned choice names is the result of a measurement, so it is kept unless the caller allows its removal. The kernels
// `sequences`, `cache_sequences` and `ascend` have only one candidate, so no choice of these kernels is ever tuned. A
// kernel that has only one candidate is nevertheless kept like a tuned kernel as long as a choice names it, because
// tuned plans need it.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"
#include "cache/rows/rows.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa {

struct CollectionRules {
  int64_t maxBytes = 0;               // limit of the file; 0: no limit
  std::optional<int64_t> maxIdleDays; // removes a kernel whose last use is more days ago
  bool unnamed = true;                // removes a kernel that no choice names, whatever the limits say
  bool tuned = false; // allows the removal of kernels that tuned choices name, and of named kernels without choices
  std::string keep;   // the content of a kernel that stays
};

struct CollectedKernel {
  KernelSummary kernel;
  int64_t lastUse = 0; // day; 0: unknown
  std::string reason;
};

struct CollectionReport {
  std::vector<CollectedKernel> removed;
  int64_t choices = 0; // choices that named a removed kernel and were removed with it
  int64_t bytesBefore = 0, bytesAfter = 0;
};

// Counts the bytes of the pages in use, which is the size that the file will have once it is compacted.
int usedBytes(sqlite::Connection &connection, int64_t &bytes);
// Removes kernels by the given rules, within the caller's transaction. `day` is today (cache/rows/use_rows.h).
int collect(sqlite::Connection &connection, const CollectionRules &rules, int64_t day, CollectionReport &report);

} // namespace nsa
