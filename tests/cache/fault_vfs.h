// A disk that fails on demand: a sqlite VFS over the default one, and the default while it lives. The code under test
// has nothing for it. Thread-safety: made and armed while no connection is open in another thread.
#pragma once

#include <cstdint>
#include <functional>

namespace nsa::test {

class FaultVfs {
public:
  enum class Fault {
    kFull,          // SQLITE_FULL, nothing is written
    kWriteError,    // SQLITE_IOERR_WRITE, nothing is written
    kTornWrite,     // half of it is written, then SQLITE_IOERR_WRITE
    kSyncError,     // SQLITE_IOERR_FSYNC; counts syncs, the others writes
    kLockError,     // SQLITE_IOERR_LOCK for every lock from here on
    kLockBusy,      // SQLITE_BUSY for every lock from here on, as if another process held it
    kNoSharedLocks, // SQLITE_IOERR_SHMLOCK for those in shared memory
  };
  enum class Lasting { kOnce, kForGood };

  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs &) = delete;
  FaultVfs &operator=(const FaultVfs &) = delete;

  // The `at`-th write or sync from now on fails, and for good also all that follow.
  static void arm(Fault fault, uint64_t at = 1, Lasting lasting = Lasting::kOnce);
  static void disarm();
  // Run before and after sqlite opens the file of a database or pack, and of no log, until `disarm`.
  static void aroundOpening(std::function<void()> before, std::function<void()> after);
  // Since the last call of arm or disarm.
  static uint64_t writes();
  static uint64_t syncs();
  static uint64_t bytesRead();
};

} // namespace nsa::test
