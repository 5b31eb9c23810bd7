#include "cache/lease.h"

#include "runtime/base/digest.h"
#include "runtime/process/process.h"
#include "runtime/process/signals_blocked.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <random>
#include <thread>

namespace nsa {

namespace {

// Between two looks at another one's lease: a CPU kernel takes some 60 ms, a tuning seconds.
constexpr std::chrono::microseconds kFirstPause{1000};
constexpr std::chrono::microseconds kLongestPause{50000};

std::string drawOwner() {
  std::random_device device;
  uint32_t words[4] = {device(), device(), device(), device()};
  return toHex(std::as_bytes(std::span(words)));
}

int64_t wallMs() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

} // namespace

// Renews while it lives.
struct KeyLease::Heart {
  uint32_t generation = processGeneration();
  std::mutex mutex;
  std::condition_variable stopped;
  bool stop = false;
  std::thread thread;

  void beat(const KeyLease &lease) {
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, lease.times.renewal, [this] { return stop; })) {
      lock.unlock();
      // What cannot be renewed now is tried again; a lease that was lost is not taken back.
      bool lost = false;
      try {
        const Result<bool> renewed = lease.store.renewLease(lease.key, lease.owner, lease.expiryMs());
        lost = renewed && !*renewed;
      } catch (const std::exception &) { // no memory to say why it cannot
      }
      lock.lock();
      if (lost)
        return;
    }
  }

  void end() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    stopped.notify_all();
    thread.join();
  }
};

KeyLease::KeyLease(KernelStore &store, LeaseKey key, LeaseTimes times)
    : store(store), key(std::move(key)), times(times), self(ProcessIdentity::ofThis()) {}

KeyLease::~KeyLease() { release(); }

int64_t KeyLease::expiryMs() const { return wallMs() + times.lease.count(); }

bool KeyLease::isOver(const LeaseRow &row) {
  if (seen != row) {
    seen = row;
    seenSince = times.now();
  }
  if (times.now() - seenSince >= times.lease)
    return true;
  if (!self.host.empty() && row.process.host == self.host)
    return hasEnded(row.process);
  return wallMs() > row.expiresMs;
}

KeyLease::State KeyLease::look() {
  Result<std::optional<LeaseRow>> row = store.findLease(key);
  if (!row)
    return State::kUnavailable;
  if (!row->has_value()) {
    seen.reset();
    return State::kFree;
  }
  return isOver(**row) ? State::kFree : State::kElsewhere;
}

KeyLease::State KeyLease::take() {
  owner = drawOwner();
  Result<bool> taken = store.swapLease(key, seen, {owner, self, expiryMs()});
  if (!taken)
    return State::kUnavailable;
  if (!*taken)
    return State::kElsewhere;
  heart = std::make_unique<Heart>();
  try {
    SignalsBlocked blocked;
    heart->thread = std::thread([this] { heart->beat(*this); });
  } catch (const std::exception &) { // no more threads, or no memory for one: what cannot be renewed is not kept
    heart.reset();
    store.dropLease(key, owner);
    return State::kUnavailable;
  }
  return State::kMine;
}

KeyLease::Outcome KeyLease::acquire(std::chrono::milliseconds longest, const std::function<bool()> &isDone,
                                    const std::function<bool()> &stop) {
  const LeaseTimes::Clock::time_point end = times.now() + longest;
  std::chrono::microseconds pause = kFirstPause;
  bool waited = false;
  for (;;) {
    State state = look();
    if (state == State::kFree) {
      // Of many who waited for one, none needs to write.
      if (waited && isDone())
        return Outcome::kDone;
      state = take();
    }
    if (state == State::kMine) {
      if (!isDone())
        return Outcome::kMine;
      release();
      return Outcome::kDone;
    }
    if (state == State::kUnavailable)
      return Outcome::kAlone;
    if (times.now() >= end || (stop && stop()))
      return Outcome::kLate;
    waited = true;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause + pause / 2, kLongestPause);
  }
}

void KeyLease::release() {
  if (!heart)
    return;
  if (heart->generation != processGeneration()) {
    (void)heart.release(); // its thread, and the lease, are the parent's
    return;
  }
  heart->end();
  heart.reset();
  store.dropLease(key, owner);
}

} // namespace nsa
