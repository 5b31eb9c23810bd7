// Looks at every row of a file, and names everything that is wrong with it.
// Thread-safety: pure functions of the file.
#pragma once

#include "cache/signing_key.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct VerificationRules {
  std::vector<PublicKey> trusted{}; // when there are any, one of them must have signed a pack
  bool requireSignature = false;
};

struct Verification {
  bool isPack = false;
  int64_t kernels = 0, choices = 0, routes = 0;
  std::vector<std::string> signers;  // keys whose signature of a pack holds
  std::vector<std::string> findings; // one line each; none: all is well
};

Verification verifyCache(const std::string &path, const VerificationRules &rules);

} // namespace nsa
