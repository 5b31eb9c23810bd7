// Files that another program has locked: waited for, and worked without in the end.
#include "cache/database/schema.h"
#include "tests/cache/store_fixture.h"

#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include <sqlite3.h>

namespace nsa {
namespace {

using namespace std::chrono_literals;

class LockedTest : public StoreTest {
protected:
  // Another program's connection.
  class Other {
  public:
    explicit Other(const std::string &file) {
      EXPECT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
      sqlite3_busy_timeout(handle, 5000);
    }
    ~Other() { sqlite3_close(handle); }
    Other(const Other &) = delete;
    Other &operator=(const Other &) = delete;
    void run(const std::string &statements) {
      EXPECT_EQ(sqlite3_exec(handle, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
          << statements << ": " << sqlite3_errmsg(handle);
    }

  private:
    sqlite3 *handle = nullptr;
  };

  // One kernel, and no log: in it a reader and a writer do not see each other.
  void fillWithoutLog() {
    ASSERT_TRUE(openStore()->put(makeKernel(1), nullptr).isOk());
    ASSERT_EQ(sql("PRAGMA journal_mode = DELETE"), "delete");
  }
  std::unique_ptr<KernelStore> openBriefly(std::string &warning, bool readOnly = false) const {
    Result<std::unique_ptr<KernelStore>> store =
        KernelStore::open({.path = path, .readOnly = readOnly, .lockedWait = 50ms}, warning);
    EXPECT_TRUE(store) << store.status().toString();
    return std::move(*store);
  }
};

TEST_F(LockedTest, AFileLockedForAWhileIsWaitedFor) {
  fillWithoutLog();
  for (const bool readOnly : {true, false}) {
    Other other(path);
    other.run("BEGIN EXCLUSIVE");
    std::jthread writer([&] {
      std::this_thread::sleep_for(700ms); // longer than what is taken for a lack of locks
      other.run("COMMIT");
    });
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
    EXPECT_EQ(warning, "");
    expectKernel(*store, 1);
  }
}

TEST_F(LockedTest, AFileThatStaysLockedIsWorkedWithout) {
  fillWithoutLog();
  Other other(path);
  other.run("BEGIN EXCLUSIVE");
  for (const bool readOnly : {true, false}) {
    std::string warning;
    std::unique_ptr<KernelStore> store = openBriefly(warning, readOnly);
    EXPECT_NE(warning.find("another process keeps it locked"), std::string::npos) << warning;
    EXPECT_EQ(store->path(), ":memory:");
    EXPECT_TRUE(store->put(makeKernel(2), nullptr).isOk());
    expectKernel(*store, 2);
  }
  other.run("COMMIT");
  std::unique_ptr<KernelStore> store = openStore();
  expectKernel(*store, 1);
  EXPECT_FALSE(holdsKernel(*store, 2));
}

TEST_F(LockedTest, ANewFileThatStaysLockedIsWorkedWithout) {
  Other other(path);
  other.run("BEGIN IMMEDIATE");
  std::string warning;
  EXPECT_EQ(openBriefly(warning)->path(), ":memory:");
  EXPECT_NE(warning.find("another process keeps it locked"), std::string::npos) << warning;
  other.run("ROLLBACK");
  EXPECT_TRUE(openStore()->put(makeKernel(1), nullptr).isOk());
}

// Who makes a new file locks it once more at once, to change its journal mode, and on a slow disk for long.
TEST_F(LockedTest, WhoFindsANewFileWaitsForItsTablesAndNotForTheLock) {
  openStore();
  const std::string schema = sql("SELECT group_concat(sql, ';') FROM sqlite_schema WHERE sql IS NOT NULL") +
                             "; PRAGMA application_id = " + std::to_string(kApplicationId) +
                             "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
  path = scratch.file("new.db");
  Other maker(path);
  maker.run("BEGIN IMMEDIATE");
  std::unique_ptr<KernelStore> store;
  std::string warning;
  std::thread opener([&] { store = openStore(path, warning); });
  std::this_thread::sleep_for(200ms);
  maker.run(schema + "; COMMIT; BEGIN IMMEDIATE");
  opener.join();
  EXPECT_EQ(warning, "");
  EXPECT_EQ(store->path(), path);
  maker.run("COMMIT");
  EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectKernel(*store, 1);
}

// A long reader keeps the journal mode from being changed; the next who opens the file changes it.
TEST_F(LockedTest, AFileThatIsBeingReadIsUsedAsItIs) {
  fillWithoutLog();
  {
    Other reader(path);
    reader.run("BEGIN; SELECT * FROM kernels");
    std::unique_ptr<KernelStore> store = openStore();
    expectKernel(*store, 1);
    reader.run("COMMIT");
    EXPECT_TRUE(store->put(makeKernel(2), nullptr).isOk());
    EXPECT_EQ(sql("PRAGMA journal_mode"), "delete");
  }
  expectKernel(*openStore(), 2);
  EXPECT_EQ(sql("PRAGMA journal_mode"), "wal");
}

// Every process that may read a folder may lock it. The lock is needed to rename a damaged file.
TEST_F(LockedTest, ALockedFolderIsNotWaitedForWithoutEnd) {
  writeFile(path, damagedDatabase(20000));
  const std::string damaged = readFile(path);
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t holder = startProcess([&] {
    const int folder = open(directory.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(flock(folder, LOCK_EX), 0);
    ASSERT_EQ(write(ready[1], "x", 1), 1);
    pollfd end = {.fd = done[0], .events = POLLIN, .revents = 0};
    poll(&end, 1, 10000); // by itself in the end, so that code that waits for it fails this test and does not hang
  });
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::string warning;
  std::unique_ptr<KernelStore> store = openBriefly(warning);
  EXPECT_NE(warning.find("cache file '" + path + "' is not used: it is damaged, and another process keeps its folder"),
            std::string::npos)
      << warning;
  EXPECT_EQ(store->path(), ":memory:");
  EXPECT_TRUE(readFile(path) == damaged) << "left for the next one";
  ASSERT_EQ(write(done[1], "x", 1), 1);
  expectGoodEnd(holder);
  for (const int end : {ready[0], ready[1], done[0], done[1]})
    close(end);
  store = openBriefly(warning);
  EXPECT_NE(warning.find("it was renamed to"), std::string::npos) << warning;
}

} // namespace
} // namespace nsa
