// Checks every row of a file and names every fault. A pack whose rows are to be copied must pass all checks of
// verifyCache, because the copied rows are trusted afterwards.
// Thread-safety: verification.h has only pure functions of the checked file.
#pragma once

#include "cache/cache_file.h"
#include "cache/database/signing_key.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct Verification {
  bool isPack = false;
  int64_t kernels = 0, choices = 0, routes = 0;
  std::vector<std::string> signers;  // the keys whose signatures of a pack are right
  std::vector<std::string> findings; // one line for each fault; empty: the file is good
};

// Checks a file. Where there are trusted keys, one of them must have signed a pack.
Verification verifyCache(const std::string &path, const SignatureRules &rules);

// Says whether openSource accepts a database as a source of rows. Unlike a pack, a database has no signature.
enum class Databases { kAccepted, kRefused };

// Opens a file whose rows are to be copied. A pack with any fault is an error: a pack is always written as a whole, and
// its rows are trusted after they were copied. A database with damaged rows is not an error: the caller copies only the
// undamaged rows.
Result<CacheFile> openSource(const std::string &path, const SignatureRules &rules, Databases databases);

} // namespace nsa
