// Compares what two files contain, by the keys of their rows.
// Thread-safety: none, like the connections.
#pragma once

#include "cache/cache_file.h"

#include <string>
#include <vector>

namespace nsa {

// The names of the rows of one table that differ between two files, in ascending order.
struct RowDifference {
  std::vector<std::string> onlyFirst, onlySecond;
  std::vector<std::string> changed; // in both files, with different content
  int64_t same = 0;
};

struct CacheDifference {
  RowDifference kernels, choices, routes;
  bool isNone() const;
};

// Two kernels are equal if content and digest are equal, two choices if they name the same kernel and both or neither
// were measured, and two routes if their thresholds are equal. compareCaches ignores differences in the fields
// `provenance` (the versions that made a row) and `evidence` (the measurements of the tuner).
Result<CacheDifference> compareCaches(CacheFile &first, CacheFile &second);

} // namespace nsa
