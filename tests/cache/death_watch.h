// Sees from within a process how its sqlite stands at each moment, so that another one can tell after its death:
// whether a write transaction was open, and what had been committed. It can also end the process in the middle of a
// write. All of it through sqlite's own interfaces (automatic extensions, traces, update hooks, replaceable system
// calls): the code under test has nothing for it. Thread-safety: installed once, before the first connection; the page
// is written by any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace nsa::test {

struct DeathWatch {
  std::atomic<int> openTransactions{0}; // begun with BEGIN IMMEDIATE, so that they hold the write lock
  std::atomic<int> committedKernels{0}; // rows inserted by transactions whose COMMIT has returned
  std::atomic<uint64_t> writes{0};      // system calls that write to a file of sqlite's
  std::atomic<uint64_t> fatalWrite{0};  // the one that writes a part and kills; 0: none
  std::atomic<uint64_t> fatalShare{0};  // of its bytes that still are written, in 1/256

  // From here on this process writes into the page, which is shared with its parent.
  static void install(DeathWatch &page);
};

// How often the kill tests kill together: NSA_TEST_KILLS, or 150 times. A fifth of it is tuning's, whose runs compile;
// the others are those of putting, merging and collecting, in equal parts.
int killsInAll();
constexpr int kEnoughKillsToTell = 30; // of where they fell

} // namespace nsa::test
