#include "cache/database/trust.h"

#include "runtime/base/trust.h"

namespace nsa {

std::string whyDatabaseNotTrusted(const std::filesystem::path &path) {
  std::string reason = whyNotTrusted(path.string());
  for (const char *ending : {"-wal", "-shm", "-journal"})
    if (reason.empty())
      reason = whyFileNotTrusted(path.string() + ending);
  return reason;
}

} // namespace nsa
