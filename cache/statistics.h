// Counts what a file contains.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/cache_file.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace nsa {

struct CacheStatistics {
  int64_t fileBytes = 0, usedBytes = 0; // of the database's pages: of all, and of those in use
  int64_t compressedBytes = 0, binaryBytes = 0;
  int64_t kernels = 0, unnamedKernels = 0; // unnamed: no choice names the kernel
  int64_t choices = 0, tunedChoices = 0;
  // The number of tuned choices whose kernel was compiled again by another revision of the compiler after the tuning
  // (remadeProvenance).
  int64_t remadeChoices = 0;
  int64_t measurements = 0, routes = 0;
  std::map<std::string, int64_t> choicesByDevice, choicesByOperator, kernelsByTarget;
  std::optional<int64_t> firstUse, lastUse; // days since 1970, for databases only
};

Result<CacheStatistics> summarizeCache(CacheFile &file);

} // namespace nsa
