// What two files hold, compared by keys. Thread-safety: none, as the connections.
#pragma once

#include "cache/cache_file.h"

#include <string>
#include <vector>

namespace nsa {

// Names of rows of one kind, ascending.
struct RowDifference {
  std::vector<std::string> onlyFirst, onlySecond;
  std::vector<std::string> changed; // in both, with other content
  int64_t same = 0;
};

struct CacheDifference {
  RowDifference kernels, choices, routes;
  bool isNone() const;
};

// Kernels by content and digest; choices by what they name and whether they were measured; routes by threshold. Neither
// provenance nor evidence counts.
Result<CacheDifference> compareCaches(CacheFile &first, CacheFile &second);

} // namespace nsa
