// Compares what two files contain, by the keys of their rows.
// Thread-safety: none, like the connections.
#pragma once

#include "cache/cache_file.h"

#include <string>
#include <vector>

namespace nsa {

// The differing rows of one kind by name, in ascending order.
struct RowDifference {
  std::vector<std::string> onlyFirst, onlySecond;
  std::vector<std::string> changed; // in both files, with different content
  int64_t same = 0;
};

struct CacheDifference {
  RowDifference kernels, choices, routes;
  bool isNone() const;
};

// Compares kernels by content and digest, choices by the kernel they name and whether they were measured, and routes by
// threshold. Provenance and evidence do not count.
Result<CacheDifference> compareCaches(CacheFile &first, CacheFile &second);

} // namespace nsa
