// A disk that is full, fails, tears a page or does not sync, at every write of every operation: each is done or says
// that it is not, nothing that was stored before is lost, and the file is whole.
#include "tests/cache/fault_vfs.h"
#include "tests/cache/stored_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <random>

namespace nsa {
namespace {

using test::FaultVfs;
using Fault = FaultVfs::Fault;
using Lasting = FaultVfs::Lasting;

// Of one operation and one fault; a third of them where NSA_TEST_DRAWS cuts what is drawn.
constexpr int kMostPoints = 24;

class FaultTest : public StoredTest {
protected:
  void SetUp() override {
    StoredTest::SetUp();
    ASSERT_TRUE(openStore()->put(makeKernel(9), nullptr).isOk()); // what a collection removes
    keep();
  }

  // `operation` with the fault at every write or sync that it does when all is well; `check` is told how it ended.
  void failEverywhere(const std::function<Status(KernelStore &)> &operation,
                      const std::function<void(const Status &)> &check) {
    const auto run = [&](const std::function<void()> &arm) {
      restore();
      std::unique_ptr<KernelStore> store = openStore();
      arm();
      Status status = operation(*store);
      refused += !status.isOk();
      return status;
    };
    const auto mostPoints = static_cast<uint64_t>(std::max(test::drawnCases(kMostPoints), kMostPoints / 3));
    std::mt19937_64 random(test::freshSeed());
    ASSERT_TRUE(run([] { FaultVfs::disarm(); }).isOk());
    const uint64_t writes = FaultVfs::writes(), syncs = FaultVfs::syncs();
    EXPECT_GT(writes, 0u);
    for (const Fault fault : {Fault::kFull, Fault::kWriteError, Fault::kTornWrite, Fault::kSyncError}) {
      const uint64_t points = fault == Fault::kSyncError ? syncs : writes;
      const uint64_t step = std::max<uint64_t>(points / mostPoints, 1);
      for (uint64_t at = 1 + random() % step; at <= points; at += step)
        for (const Lasting lasting : {Lasting::kOnce, Lasting::kForGood}) {
          SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at " + std::to_string(at) + " of " +
                       std::to_string(points) + (lasting == Lasting::kOnce ? "" : " and from then on"));
          const Status status = run([&] { FaultVfs::arm(fault, at, lasting); });
          FaultVfs::disarm();
          if (!status.isOk())
            EXPECT_NE(status.toString().find('\''), std::string::npos) << "names no file: " << status.toString();
          check(status);
          expectNothingLost();
          if (HasFailure())
            return;
        }
    }
    EXPECT_GT(refused, 0) << "no fault was noticed";
  }

  const FaultVfs vfs;
  int refused = 0;
};

TEST_F(FaultTest, APutIsStoredOrSaysThatItIsNot) {
  failEverywhere(
      [](KernelStore &store) {
        const StoredChoice choice = makeChoice(7, true);
        return store.put(makeKernel(7), &choice);
      },
      [&](const Status &status) {
        std::unique_ptr<KernelStore> store = openStore();
        EXPECT_EQ(holdsKernel(*store, 7), status.isOk());
        if (status.isOk())
          expectKernel(*store, 7);
      });
}

TEST_F(FaultTest, AMergeIsDoneOrSaysThatItIsNot) {
  const std::string other = scratch.file("other.db");
  fill({5, 6}, other);
  failEverywhere(
      [&](KernelStore &store) {
        Result<CacheFile> from = CacheFile::open(other);
        return from ? store.merge(*from, Prefer::kSource).status() : from.status();
      },
      [&](const Status &status) {
        std::unique_ptr<KernelStore> store = openStore();
        for (const int number : {5, 6})
          EXPECT_EQ(holdsKernel(*store, number), status.isOk()) << "all of it or nothing";
      });
}

TEST_F(FaultTest, ACollectionRemovesOnlyWhatItMay) {
  failEverywhere([](KernelStore &store) { return store.collect({}).status(); },
                 [&](const Status &status) { EXPECT_EQ(holdsKernel(*openStore(), 9), !status.isOk()); });
}

TEST_F(FaultTest, AnExportMakesAWholePackOrNone) {
  ASSERT_TRUE(exportFrom(path, packPath));
  const std::string whole = readFile(packPath);
  failEverywhere(
      [&](KernelStore &) {
        std::filesystem::remove(packPath);
        return exportFrom(path, packPath).status();
      },
      [&](const Status &status) {
        EXPECT_EQ(std::filesystem::exists(packPath), status.isOk());
        if (status.isOk())
          EXPECT_TRUE(readFile(packPath) == whole);
        for (const std::string &name : scratch.list())
          EXPECT_EQ(name.find("nsapack."), std::string::npos) << name << " was left behind";
      });
}

TEST_F(FaultTest, AFailedExportLeavesTheOldPack) {
  ASSERT_TRUE(exportFrom(path, packPath));
  const std::string old = readFile(packPath);
  FaultVfs::arm(Fault::kFull, 5, Lasting::kForGood);
  EXPECT_FALSE(exportFrom(path, packPath, {.existing = ReplacingFile::Existing::kReplace}));
  EXPECT_FALSE(signPack(packPath, SecretKey::generate()).isOk());
  FaultVfs::disarm();
  EXPECT_TRUE(readFile(packPath) == old);
}

TEST_F(FaultTest, ANewFileThatCannotBeMadeIsWorkedWithout) {
  path = scratch.file("new.db");
  FaultVfs::arm(Fault::kFull, 1, Lasting::kForGood);
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning);
  EXPECT_NE(warning.find("memory only"), std::string::npos) << warning;
  EXPECT_EQ(store->path(), ":memory:");
  FaultVfs::disarm();
  store.reset();
  EXPECT_TRUE(openStore()->put(makeKernel(1), nullptr).isOk()) << "the next process finds room";
}

// As file systems of a network do whose lock service is down.
TEST_F(FaultTest, WithoutLocksACopyInMemoryServes) {
  FaultVfs::arm(Fault::kLockError);
  for (const bool readOnly : {false, true}) {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
    EXPECT_NE(warning.find("its file system gives no locks; what is stored is used from a copy in memory"),
              std::string::npos)
        << warning;
    EXPECT_EQ(store->path(), ":memory:");
    for (int i = 0; i < kStored; ++i)
      expectKernel(*store, i);
    EXPECT_TRUE(store->put(makeKernel(7), nullptr).isOk());
    expectKernel(*store, 7);
  }
  FaultVfs::disarm();
  EXPECT_TRUE(readFile(path) == kept) << "nothing is added";
}

// A network file system without a lock service answers every process that another one has the lock.
TEST_F(FaultTest, LocksThatDoNotExistAreNotWaitedFor) {
  FaultVfs::arm(Fault::kLockBusy);
  for (const Journal journal : {Journal::kRollback, Journal::kWriteAheadLog}) {
    KernelStore::Options options;
    options.path = path;
    options.journal = journal;
    options.lockedWait = std::chrono::hours(1); // longer than CTest lets this program run
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open(options, warning);
    ASSERT_TRUE(store);
    EXPECT_NE(warning.find("its file system gives no locks; what is stored is used from a copy in memory"),
              std::string::npos)
        << warning;
    for (int i = 0; i < kStored; ++i)
      expectKernel(**store, i);
    EXPECT_TRUE((*store)->put(makeKernel(7), nullptr).isOk());
  }
  FaultVfs::disarm();
  EXPECT_TRUE(readFile(path) == kept) << "nothing is added";
  EXPECT_EQ(scratch.list(), std::vector<std::string>{"kernels.db"}) << "and nothing is left behind";
}

TEST_F(FaultTest, WithoutLocksAMissingFileIsWorkedWithout) {
  FaultVfs::arm(Fault::kLockError);
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(scratch.file("new.db"), warning);
  EXPECT_EQ(store->path(), ":memory:");
  EXPECT_NE(warning.find("no locks"), std::string::npos) << warning;
}

TEST_F(FaultTest, LocksLostInUseAreACopyFromThereOn) {
  for (const Fault fault : {Fault::kLockError, Fault::kNoSharedLocks}) {
    SCOPED_TRACE(static_cast<int>(fault));
    restore();
    KernelStore::Options options;
    options.path = path;
    if (fault == Fault::kLockError)
      options.journal = Journal::kRollback; // a log takes the other kind
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open(options, warning);
    ASSERT_TRUE(store);
    EXPECT_EQ((*store)->trouble(), "");
    FaultVfs::arm(fault);
    (void)holdsKernel(**store, 0); // notices
    for (int i = 0; i < kStored; ++i)
      expectKernel(**store, i);
    EXPECT_NE((*store)->trouble().find("no locks"), std::string::npos) << (*store)->trouble();
    store->reset();
    FaultVfs::disarm();
    expectNothingLost();
  }
}

} // namespace
} // namespace nsa
