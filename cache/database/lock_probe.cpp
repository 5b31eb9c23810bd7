#include "cache/database/lock_probe.h"

#include "cache/database/schema.h"
#include "cache/database/sqlite.h"

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <unistd.h>

namespace nsa {

namespace {

// A lock service that has just begun to answer refuses some of the first.
constexpr int kProbeTries = 3;
constexpr std::chrono::milliseconds kProbePause{50};

} // namespace

bool canLockBeside(const std::filesystem::path &path) {
  std::random_device device;
  const std::string probe = path.string() + ".locks-" + std::to_string(uint64_t{device()} << 32 | device());
  int code;
  sqlite::Connection connection = sqlite::Connection::open(probe, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, code);
  if (!connection)
    return true;           // nothing can be made here: that says nothing of locks
  ::unlink(probe.c_str()); // it serves as well without a name, and no death leaves it behind
  connection.execute("PRAGMA journal_mode = MEMORY");
  for (int tries = 0; tries < kProbeTries; ++tries) {
    if (tries > 0)
      std::this_thread::sleep_for(kProbePause);
    code = connection.execute("BEGIN EXCLUSIVE");
    if (code == SQLITE_OK)
      connection.execute("ROLLBACK");
    if ((code & 0xff) != SQLITE_BUSY && !isLackOfLocks(code))
      return true;
  }
  return false;
}

} // namespace nsa
