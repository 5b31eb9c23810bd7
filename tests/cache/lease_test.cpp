// Who may make a key: one at a time, also when a process dies, sleeps, or has another idea of the time.
#include "cache/lease.h"
#include "tests/cache/store_fixture.h"
#include "tests/harness/wait_until.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <sqlite3.h>

namespace nsa {
namespace {

using namespace std::chrono_literals;
using State = KeyLease::State;
using Clock = LeaseTimes::Clock;

const LeaseKey kKey{"window | seqlen_k=64", "cpu", "tune"};

// What a looker with kByHand takes for the time. It stands still unless a test moves it, so the load of a machine
// decides nothing.
Clock::time_point handTime;
const LeaseTimes kByHand{.lease = 300ms, .renewal = 50ms, .now = [] { return handTime; }};

class LeaseTest : public StoreTest {
protected:
  std::string row(const std::string &column) const { return sql("SELECT " + column + " FROM leases"); }

  // Until the holder has renewed its lease once more; false when it does not.
  bool isRenewed() const {
    const std::string before = row("expires");
    return test::waitUntil([&] { return row("expires") != before; });
  }

  // The lease, which no process renews from the first look on, is over after its time and not before.
  static void expectOverAfterItsTime(KeyLease &lease) {
    EXPECT_EQ(lease.look(), State::kElsewhere);
    handTime += kByHand.lease - 1ms;
    EXPECT_EQ(lease.look(), State::kElsewhere);
    handTime += 1ms;
    EXPECT_EQ(lease.look(), State::kFree);
  }

  // A child that holds the lease and waits for its end.
  pid_t startHolder(const LeaseTimes &times) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_t child = startProcess([&] {
      std::unique_ptr<KernelStore> own = openStore();
      KeyLease lease(*own, kKey, times);
      EXPECT_EQ(lease.look(), State::kFree);
      EXPECT_EQ(lease.take(), State::kMine);
      EXPECT_EQ(write(ready[1], "x", 1), 1);
      for (;;)
        pause();
    });
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }

  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
};

TEST_F(LeaseTest, OneHoldsTheOthersSeeIt) {
  std::unique_ptr<KernelStore> store = openStore(), otherStore = openStore();
  KeyLease first(*store, kKey), second(*otherStore, kKey), sameStore(*store, kKey);
  EXPECT_EQ(first.look(), State::kFree);
  EXPECT_EQ(second.look(), State::kFree);
  EXPECT_EQ(first.take(), State::kMine);
  EXPECT_EQ(second.take(), State::kElsewhere) << "it was free at the last look, not any more";
  EXPECT_EQ(second.look(), State::kElsewhere);
  EXPECT_EQ(sameStore.look(), State::kElsewhere);
  first.release();
  EXPECT_EQ(second.look(), State::kFree);
  EXPECT_EQ(second.take(), State::kMine);
  EXPECT_EQ(first.look(), State::kElsewhere);
}

TEST_F(LeaseTest, EndsWithItsScope) {
  std::unique_ptr<KernelStore> store = openStore();
  {
    KeyLease lease(*store, kKey);
    EXPECT_EQ(lease.take(), State::kMine);
    EXPECT_EQ(row("count(*)"), "1");
  }
  EXPECT_EQ(row("count(*)"), "0");
}

TEST_F(LeaseTest, KeysDoNotWaitForEachOther) {
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease lease(*store, kKey);
  ASSERT_EQ(lease.take(), State::kMine);
  for (const LeaseKey &key : {LeaseKey{"other", kKey.device, kKey.work}, LeaseKey{kKey.problem, "other", kKey.work},
                              LeaseKey{kKey.problem, kKey.device, "default"}}) {
    KeyLease other(*store, key);
    EXPECT_EQ(other.look(), State::kFree);
    EXPECT_EQ(other.take(), State::kMine);
  }
}

TEST_F(LeaseTest, IsRenewedWhileItIsHeld) {
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease holder(*store, kKey, kByHand), other(*store, kKey, kByHand);
  ASSERT_EQ(holder.take(), State::kMine);
  EXPECT_EQ(other.look(), State::kElsewhere);
  for (int renewals = 0; renewals < 3; ++renewals) {
    ASSERT_TRUE(isRenewed());
    handTime += kByHand.lease - 1ms;
    EXPECT_EQ(other.look(), State::kElsewhere) << "renewed " << renewals + 1 << " times";
  }
}

TEST_F(LeaseTest, ADeadHolderIsNotWaitedFor) {
  pid_t child = startHolder({});
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease lease(*store, kKey, kByHand);
  EXPECT_EQ(lease.look(), State::kElsewhere);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  // Dead, but not reaped. No time passes in which the lease could end.
  EXPECT_TRUE(test::waitUntil([&] { return lease.look() == State::kFree; }));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(lease.look(), State::kFree);
  EXPECT_EQ(lease.take(), State::kMine);
}

TEST_F(LeaseTest, AProcessWithAUsedPidIsNotTheHolder) {
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease holder(*store, kKey, {.lease = 10s, .renewal = 10s}), other(*store, kKey);
  ASSERT_EQ(holder.take(), State::kMine);
  EXPECT_EQ(other.look(), State::kElsewhere);
  sql("UPDATE leases SET started = started - 1");
  EXPECT_EQ(other.look(), State::kFree);
  for (const char *pid : {"0", "-1", "9223372036854775807"}) { // damage
    sql(std::string("UPDATE leases SET pid = ") + pid);
    EXPECT_EQ(other.look(), State::kFree) << pid;
  }
}

// As a process whose machine sleeps, or that hangs in a debugger.
TEST_F(LeaseTest, AStoppedHolderIsWaitedForUntilItsLeaseEnds) {
  pid_t child = startHolder(kByHand);
  EXPECT_TRUE(isRenewed()); // so that it is not stopped inside one, with the file locked
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease lease(*store, kKey, kByHand);
  expectOverAfterItsTime(lease);
  ASSERT_EQ(lease.take(), State::kMine);
  std::string owner = row("owner");
  ASSERT_EQ(kill(child, SIGCONT), 0);
  std::this_thread::sleep_for(4 * kByHand.renewal);
  EXPECT_EQ(row("owner"), owner) << "a lost lease is not taken back";
  end(child);
}

// The wall clock counts for processes of other hosts alone, and not when it is far off.
TEST_F(LeaseTest, HoldersOnOtherHosts) {
  std::unique_ptr<KernelStore> store = openStore();
  auto plant = [&](const std::string &expires) {
    sql("INSERT OR REPLACE INTO leases VALUES ('" + kKey.problem + "', 'cpu', 'tune', 'x', 'elsewhere', 1, 1, " +
        expires + ")");
  };
  auto seconds = [](const std::string &offset) { return "(unixepoch() + " + offset + ") * 1000"; };
  plant(seconds("-1"));
  EXPECT_EQ(KeyLease(*store, kKey).look(), State::kFree) << "expired";

  for (const char *offset : {"1000", "1000000000"}) { // theirs was set back since, or ours is behind
    plant(seconds(offset));
    KeyLease lease(*store, kKey, kByHand);
    expectOverAfterItsTime(lease);
    EXPECT_EQ(lease.take(), State::kMine);
  }
  plant(seconds("1000"));
  KeyLease lease(*store, kKey, kByHand);
  for (int i = 0; i < 10; ++i) { // they renew it
    EXPECT_EQ(lease.look(), State::kElsewhere);
    handTime += kByHand.lease / 3;
    plant(seconds(std::to_string(1001 + i)));
  }
}

// A clock that jumps moves no lease of a living process of this host.
TEST_F(LeaseTest, TheWallClockDoesNotCountOnOneHost) {
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease holder(*store, kKey, {.lease = 10s, .renewal = 10s});
  ASSERT_EQ(holder.take(), State::kMine);
  sql("UPDATE leases SET expires = 0");
  KeyLease other(*store, kKey);
  EXPECT_EQ(other.look(), State::kElsewhere);
}

TEST_F(LeaseTest, WhereNothingCanBeWrittenThereAreNone) {
  openStore();
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning, true);
  KeyLease lease(*store, kKey);
  EXPECT_EQ(lease.look(), State::kUnavailable);
  EXPECT_EQ(lease.take(), State::kUnavailable);
}

TEST_F(LeaseTest, AStoreInMemoryHasThemForItsThreads) {
  path = ":memory:";
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease first(*store, kKey), second(*store, kKey);
  EXPECT_EQ(first.take(), State::kMine);
  EXPECT_EQ(second.look(), State::kElsewhere);
}

// No file may grow: what a full disk looks like to sqlite.
TEST_F(LeaseTest, AFullDiskMeansWorkWithout) {
  StoredChoice choice = makeChoice(1, true);
  ASSERT_TRUE(openStore()->put(makeKernel(1), &choice).isOk());
  expectGoodEnd(startProcess([&] {
    std::unique_ptr<KernelStore> store = openStore();
    KeyLease held(*store, {"held before", "cpu", "tune"}, kByHand);
    EXPECT_EQ(held.take(), State::kMine);
    signal(SIGXFSZ, SIG_IGN);
    rlimit none{0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    KeyLease lease(*store, kKey, kByHand);
    EXPECT_EQ(lease.look(), State::kFree);
    EXPECT_EQ(lease.take(), State::kUnavailable);
    EXPECT_FALSE(store->put(makeKernel(2), nullptr).isOk());
    // What cannot be deleted either is not renewed, and so ends by itself.
    held.release();
    KeyLease next(*store, {"held before", "cpu", "tune"}, kByHand);
    expectOverAfterItsTime(next);
    EXPECT_EQ(next.take(), State::kUnavailable);
    expectKernel(*store, 1);
    EXPECT_EQ(store->counters().damagedRows, 0u) << "a full disk is no damage";
    EXPECT_EQ(store->path(), path);
  }));
  std::unique_ptr<KernelStore> store = openStore();
  expectKernel(*store, 1);
  EXPECT_EQ(KeyLease(*store, kKey).look(), State::kFree);
  store.reset();
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

// Another process writes for a while: that is waited for.
TEST_F(LeaseTest, ABusyFileIsNoReasonToWorkWithout) {
  std::unique_ptr<KernelStore> store = openStore();
  sqlite3 *other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  {
    std::jthread writer([&] {
      std::this_thread::sleep_for(300ms);
      EXPECT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
    });
    KeyLease lease(*store, kKey);
    EXPECT_EQ(lease.look(), State::kFree) << "looking needs no lock";
    EXPECT_EQ(lease.take(), State::kMine);
  }
  sqlite3_close(other);
}

TEST_F(LeaseTest, WhoWaitedTakesWhatWasMade) {
  std::unique_ptr<KernelStore> store = openStore(), otherStore = openStore();
  auto holder = std::make_unique<KeyLease>(*store, kKey);
  ASSERT_EQ(holder->take(), State::kMine);
  std::atomic<bool> made = false;
  std::jthread maker([&] {
    std::this_thread::sleep_for(100ms);
    made = true;
    holder.reset();
  });
  KeyLease lease(*otherStore, kKey);
  EXPECT_EQ(lease.acquire(5000ms, [&] { return made.load(); }), KeyLease::Outcome::kDone);
  EXPECT_EQ(lease.look(), State::kFree) << "it took nothing for itself";
}

TEST_F(LeaseTest, WhoWaitedForAFailureMakesItItself) {
  std::unique_ptr<KernelStore> store = openStore();
  auto holder = std::make_unique<KeyLease>(*store, kKey);
  ASSERT_EQ(holder->take(), State::kMine);
  std::jthread maker([&] {
    std::this_thread::sleep_for(100ms);
    holder.reset();
  });
  KeyLease lease(*store, kKey);
  int looks = 0;
  EXPECT_EQ(lease.acquire(5000ms, [&] { return ++looks, false; }), KeyLease::Outcome::kMine);
  EXPECT_EQ(looks, 2) << "after the other one, and with the lease in hand";
}

// What was finished between a caller's lookup and its lease is not made again.
TEST_F(LeaseTest, LooksOnceMoreWithTheLeaseInHand) {
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease lease(*store, kKey);
  EXPECT_EQ(lease.acquire(5000ms, [] { return true; }), KeyLease::Outcome::kDone);
  EXPECT_EQ(row("count(*)"), "0");
}

TEST_F(LeaseTest, AWaitEnds) {
  std::unique_ptr<KernelStore> store = openStore();
  KeyLease holder(*store, kKey), other(*store, kKey);
  ASSERT_EQ(holder.take(), State::kMine);
  Clock::time_point begin = Clock::now();
  EXPECT_EQ(other.acquire(200ms, [] { return false; }), KeyLease::Outcome::kLate);
  EXPECT_GE(Clock::now() - begin, 200ms);
  EXPECT_EQ(other.acquire(0ms, [] { return false; }), KeyLease::Outcome::kLate);
  EXPECT_EQ(holder.look(), State::kElsewhere) << "the holder keeps it";
}

// Who asks between looks whether to go on waiting goes round when the holder has ended meanwhile.
TEST_F(LeaseTest, AWaitThatMayBeGivenUpSeesTheHoldersEnd) {
  std::unique_ptr<KernelStore> store = openStore();
  auto holder = std::make_unique<KeyLease>(*store, kKey);
  KeyLease other(*store, kKey);
  ASSERT_EQ(holder->take(), State::kMine);
  int asked = 0;
  EXPECT_EQ(other.acquire(5000ms, [] { return false; }, [&] { return ++asked == 3; }), KeyLease::Outcome::kLate);
  EXPECT_EQ(asked, 3);
  bool made = false;
  const auto finish = [&] {
    made = true;
    holder.reset();
    return false;
  };
  EXPECT_EQ(other.acquire(5000ms, [&] { return made; }, finish), KeyLease::Outcome::kDone);
  EXPECT_EQ(other.acquire(0ms, [] { return false; }), KeyLease::Outcome::kMine);
}

TEST_F(LeaseTest, TheChildOfAForkHoldsNothing) {
  std::unique_ptr<KernelStore> store = openStore();
  auto lease = std::make_unique<KeyLease>(*store, kKey);
  ASSERT_EQ(lease->take(), State::kMine);
  expectGoodEnd(startProcess([&] {
    EXPECT_EQ(KeyLease(*store, kKey).look(), State::kElsewhere) << "it is the parent's";
    lease.reset();
    EXPECT_EQ(KeyLease(*store, kKey).look(), State::kElsewhere);
  }));
  EXPECT_EQ(KeyLease(*store, kKey).look(), State::kElsewhere);
  lease.reset();
  EXPECT_EQ(row("count(*)"), "0");
}

// Held by one at a time, also while processes race to make the file and holders are killed.
TEST_F(LeaseTest, ProcessesTakeTurns) {
  struct Shared {
    std::atomic<int> inside, turns, most;
  };
  void *page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto *shared = new (page) Shared{};
  constexpr int kProcesses = 8, kTurns = 15;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p)
    children.push_back(startProcess([&, p] {
      std::unique_ptr<KernelStore> store = openStore();
      for (int turn = 0; turn < kTurns; ++turn) {
        KeyLease lease(*store, kKey);
        while (lease.look() != State::kFree || lease.take() != State::kMine)
          std::this_thread::sleep_for(1ms);
        int inside = ++shared->inside;
        if (inside > shared->most)
          shared->most = inside;
        std::this_thread::sleep_for(1ms);
        ++shared->turns;
        --shared->inside;
        if (p == 0 && turn == kTurns / 2)
          kill(getpid(), SIGKILL); // holding it
      }
    }));
  for (int p = 0; p < kProcesses; ++p) {
    if (p != 0)
      expectGoodEnd(children[static_cast<size_t>(p)]);
    else
      waitpid(children[0], nullptr, 0);
  }
  EXPECT_EQ(shared->most, 1);
  EXPECT_EQ(shared->turns, (kProcesses - 1) * kTurns + kTurns / 2 + 1);
  munmap(page, sizeof(Shared));
}

} // namespace
} // namespace nsa
