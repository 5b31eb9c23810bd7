// One caller's view of the right to make something alone: what one process makes, the others wait for and then take.
// A lease only saves work. Whoever cannot have one (a file that cannot be written) works without, and two who both
// believe to hold one do the work twice and store the same.
// A holder renews its lease from a thread of its own until it releases it. A lease is over when its process has ended,
// which is known at once on the same host; when nobody renewed it for `lease` by the looker's own steady clock; or, of
// another host, when it has expired by the wall clock. So no clock that jumps can block anybody for longer than
// `lease`.
// Ownership: borrows its store. Thread-safety: one thread at a time; in the child of a fork it holds nothing.
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
  Clock::time_point (*now)() = Clock::now; // the looker's clock
};

class KeyLease {
public:
  enum class State {
    kFree,      // nobody's, or left behind by its holder
    kElsewhere, // another caller works on it
    kMine,
    kUnavailable, // there are no leases here: work without
  };

  KeyLease(KernelStore &store, LeaseKey key, LeaseTimes times = {});
  ~KeyLease();
  KeyLease(const KeyLease &) = delete;
  KeyLease &operator=(const KeyLease &) = delete;

  // Writes nothing; to be called again and again while another one works.
  State look();
  // After `look` found it free: kMine, or kElsewhere when another caller was faster.
  State take();
  void release();

  enum class Outcome {
    kMine,  // to be made by this caller
    kDone,  // another one has made it
    kAlone, // there are no leases: to be made without one
    kLate,  // still another caller's at the end of the wait
  };
  // Waits for the lease, for `longest` at most, or until `stop`, which is asked between looks, says so. `isDone` looks
  // for what others made: after each of them, and once more with the lease in hand, because one may have come and gone
  // before.
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
  std::unique_ptr<Heart> heart; // while mine
};

} // namespace nsa
