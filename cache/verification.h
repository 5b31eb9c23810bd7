// Looks at every row of a file, and names everything that is wrong with it; and opens a file to take its rows to where
// they are believed, which asks for the same.
// Thread-safety: pure functions of the file.
#pragma once

#include "cache/cache_file.h"
#include "cache/signing_key.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct Verification {
  bool isPack = false;
  int64_t kernels = 0, choices = 0, routes = 0;
  std::vector<std::string> signers;  // keys whose signature of a pack holds
  std::vector<std::string> findings; // one line each; none: all is well
};

// Where there are trusted keys, one of them must have signed a pack.
Verification verifyCache(const std::string &path, const SignatureRules &rules);

// Whether rows are taken from a database, which no signature vouches for.
enum class Databases { kAccepted, kRefused };

// A pack in which anything is wrong is an error: it was made whole, and what is taken from it is believed afterwards.
// A damaged row of a database is one that its reader leaves out.
Result<CacheFile> openSource(const std::string &path, const SignatureRules &rules, Databases databases);

} // namespace nsa
