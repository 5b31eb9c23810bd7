// A lease is the exclusive right of one process to compile or tune a kernel. A caller uses a KeyLease object to take,
// hold and release a lease. Other processes wait until the holder of a lease has made the kernel or choice, and then
// use it. A lease only saves work. A caller that cannot get a lease, because the file cannot be written, works without
// a lease. If two callers both believe that they hold the same lease, both do the work and store the same result.
// While a holder has a lease, a separate thread renews it. A lease ends when the process that holds it has ended, which
// other processes of the same host see at once. A lease also ends when it was not renewed for the time `lease`,
// measured by the steady clock of the process that checks it. A lease of another host also ends when it has expired by
// the wall clock. Because the steady clock also ends a lease, no jump of a clock can block a process for longer than
// `lease`.
// Ownership: a KeyLease borrows its store.
// Thread-safety: one thread at a time may use a KeyLease; after a fork, the copy of a KeyLease in the child process
// holds no lease.
#pragma once

#include "cache/kernel_store.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace nsa {

struct LeaseTimes {
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds lease{10000};
  std::chrono::milliseconds renewal{2000};
  Clock::time_point (*now)() = Clock::now; // the clock of the process that looks
};

class KeyLease {
public:
  enum class State {
    kFree,      // not taken, or left behind by its holder
    kElsewhere, // another caller has it
    kMine,
    kUnavailable, // this store has no leases: work without one
  };

  KeyLease(KernelStore &store, LeaseKey key, LeaseTimes times = {});
  ~KeyLease();
  KeyLease(const KeyLease &) = delete;
  KeyLease &operator=(const KeyLease &) = delete;

  // `look` reads the state of the lease and writes nothing. A waiting caller calls `look` again and again.
  State look();
  // Takes the lease after `look` found it free. The result is kElsewhere when another caller has taken the lease first.
  State take();
  void release();

  enum class Outcome {
    kMine,  // this caller must make it
    kDone,  // another caller has made it
    kAlone, // there are no leases: this caller must make it without one
    kLate,  // at the end of the wait another caller still has the lease
  };
  // Waits for the lease for at most `longest`, or until the callback `stop` returns true; `stop` is called each time
  // after this caller has read the state of the lease. The callback `isDone` checks whether another caller has already
  // made the kernel or choice. `isDone` is called each time the lease of another holder has ended, and once more after
  // this caller has taken the lease, because another caller may have taken and released the lease between two calls of
  // `look`.
  Outcome acquire(std::chrono::milliseconds longest, const std::function<bool()> &isDone,
                  const std::function<bool()> &stop = {});

private:
  struct Heart;
  bool isOver(const LeaseRow &row);
  int64_t expiryMs() const;

  KernelStore &store;
  LeaseKey key;
  LeaseTimes times;
  ProcessIdentity self;
  std::optional<LeaseRow> seen; // at the last look
  LeaseTimes::Clock::time_point seenSince;
  std::string owner;
  std::unique_ptr<Heart> heart; // renews the lease while this holds it
};

} // namespace nsa
