// Files whose writer died in the middle of a write, or before anything was in them, or is at it: read as they were
// before, or not at all, and never changed by who must not.
#include "cache/cache_file.h"
#include "cache/database/database_file.h"
#include "cache/database/unfinished_write.h"
#include "cache/statistics.h"
#include "tests/cache/store_fixture.h"

#include <barrier>
#include <filesystem>
#include <functional>
#include <sqlite3.h>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

namespace nsa {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char *kNotEnded = "a write to it was begun and not ended";

class UnfinishedTest : public StoreTest {
protected:
  static constexpr int kKernels = 8;

  // Another program's transaction, with pages of it in the file before its end.
  class Writer {
  public:
    explicit Writer(const std::string &file) {
      EXPECT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
      run("PRAGMA cache_size = 2; BEGIN; UPDATE kernels SET binary = zeroblob(30000)");
    }
    ~Writer() { sqlite3_close(handle); }
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;
    void run(const char *statements) {
      EXPECT_EQ(sqlite3_exec(handle, statements, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    }

  private:
    sqlite3 *handle = nullptr;
  };

  void SetUp() override {
    {
      std::string warning;
      auto store = KernelStore::open({.path = path, .journal = Journal::kRollback}, warning);
      ASSERT_TRUE(store) << store.status().toString();
      for (int number = 1; number <= kKernels; ++number)
        ASSERT_TRUE((*store)->put(makeKernel(number), nullptr).isOk());
    }
    whole = readFile(path);
    const Writer writer(path);
    torn = readFile(path);
    journal = readFile(path + "-journal");
    ASSERT_NE(torn, whole) << "pages must have been written";
  }

  // The writer has died.
  void leave() const {
    writeFile(path, torn);
    writeFile(path + "-journal", journal);
  }
  void leave(size_t offset, const std::string &bytes) {
    torn.replace(offset, bytes.size(), bytes);
    leave();
  }
  void expectUntouched() const {
    EXPECT_TRUE(readFile(path) == torn);
    EXPECT_TRUE(readFile(path + "-journal") == journal);
  }
  void expectTakenBack() const {
    EXPECT_FALSE(fs::exists(path + "-journal"));
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(sql("SELECT count(*) FROM kernels WHERE binary <> zeroblob(30000)"), std::to_string(kKernels));
  }
  FileVerdict takeBack(Journal kind = Journal::kWriteAheadLog) const {
    return takeBackUnfinished(path, kind, std::chrono::steady_clock::now() + 50ms);
  }
  std::string refusal() const { return CacheFile::open(path).status().toString(); }

  std::string whole, torn, journal;
};

TEST_F(UnfinishedTest, AReaderTakesBackWhatADeadWriterBegan) {
  leave();
  {
    Result<CacheFile> file = CacheFile::open(path);
    ASSERT_TRUE(file) << file.status().toString();
    EXPECT_EQ(file->kernels()->size(), static_cast<size_t>(kKernels));
    EXPECT_FALSE(file->isEmpty());
  }
  expectTakenBack();

  leave();
  std::string warning;
  auto store = KernelStore::open({.path = path, .readOnly = true, .takeBack = true}, warning);
  EXPECT_EQ(warning, "");
  EXPECT_EQ((*store)->path(), path);
  EXPECT_TRUE((*store)->isReadOnly());
  for (int number = 1; number <= kKernels; ++number)
    expectKernel(**store, number);
  expectTakenBack();
}

// What a pinned table is read by.
TEST_F(UnfinishedTest, AStoreThatNeverWritesTakesNothingBack) {
  leave();
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning, true);
  EXPECT_NE(warning.find(kNotEnded), std::string::npos) << warning;
  EXPECT_EQ(store->path(), ":memory:");
  expectUntouched();
}

TEST_F(UnfinishedTest, WhoMayNotWriteSaysSo) {
  leave();
  chmod(path.c_str(), 0444);
  chmod((path + "-journal").c_str(), 0444);
  chmod(directory.c_str(), 0755);
  asOrdinaryUser([&] {
    EXPECT_EQ(takeBack(), FileVerdict::kUnreachable);
    EXPECT_NE(refusal().find(kNotEnded), std::string::npos) << refusal();
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_NE(warning.find(kNotEnded), std::string::npos) << warning;
    EXPECT_EQ(store->path(), ":memory:") << "no connection without locks to a file that others may write";
  });
  expectUntouched();
}

TEST_F(UnfinishedTest, AForeignFileIsLeftAlone) {
  leave(68, "MINE"); // application_id
  EXPECT_EQ(takeBack(), FileVerdict::kForeign);
  EXPECT_NE(refusal().find("it is no kernel database"), std::string::npos) << refusal();
  expectUntouched();
}

TEST_F(UnfinishedTest, ANewerSchemaIsLeftAlone) {
  leave(60, std::string("\0\0\0\x09", 4)); // user_version
  EXPECT_EQ(takeBack(), FileVerdict::kNewer);
  EXPECT_NE(refusal().find("written by a newer version"), std::string::npos) << refusal();
  std::string warning;
  EXPECT_EQ(openStore(path, warning)->path(), ":memory:");
  EXPECT_NE(warning.find("written by a newer version"), std::string::npos) << warning;
  expectUntouched();
}

TEST_F(UnfinishedTest, ALiveWriterIsWaitedFor) {
  Writer writer(path);
  EXPECT_EQ(takeBack(), FileVerdict::kLocked);
  const DatabaseFile file = openDatabaseFile(path, FileUse::kReadMended, 50ms);
  EXPECT_NE(file.warning.find("another process keeps it locked"), std::string::npos) << file.warning;
  writer.run("COMMIT"); // which needs its journal
  EXPECT_EQ(takeBack(), FileVerdict::kUsable) << "no journal is left";
  EXPECT_EQ(sql("SELECT count(*) FROM kernels WHERE binary = zeroblob(30000)"), std::to_string(kKernels));
}

// sqlite's way to files, with something done just after it has opened a journal.
class JournalHook {
public:
  explicit JournalHook(std::function<void()> then) {
    hook = std::move(then);
    real = sqlite3_vfs_find(nullptr);
    hooked = *real;
    hooked.zName = "hooked";
    hooked.xOpen = [](sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given) {
      const int code = real->xOpen(vfs, name, file, flags, given);
      if ((flags & SQLITE_OPEN_MAIN_JOURNAL) && hook)
        std::exchange(hook, nullptr)();
      return code;
    };
    sqlite3_vfs_register(&hooked, 1);
  }
  ~JournalHook() {
    sqlite3_vfs_unregister(&hooked);
    sqlite3_vfs_register(real, 1);
  }
  JournalHook(const JournalHook &) = delete;
  JournalHook &operator=(const JournalHook &) = delete;
  static bool isDone() { return !hook; }

private:
  static inline std::function<void()> hook;
  static inline sqlite3_vfs *real = nullptr, hooked{};
};

// Between two looks of a reader another one takes it back: that is no reason to go on without locks.
TEST_F(UnfinishedTest, AnotherReaderIsFaster) {
  leave();
  DatabaseFile file;
  {
    JournalHook hook([&] {
      writeFile(path, whole);
      fs::remove(path + "-journal");
    });
    file = openDatabaseFile(path, FileUse::kReadMended, 1s);
    EXPECT_TRUE(hook.isDone());
  }
  EXPECT_EQ(file.warning, "");
  int64_t kernels = 0;
  EXPECT_EQ(file.connection.integer("SELECT count(*) FROM kernels", kernels), SQLITE_OK);
  EXPECT_EQ(kernels, kKernels);
  sql("DELETE FROM kernels WHERE rowid = 1");
  EXPECT_EQ(file.connection.integer("SELECT count(*) FROM kernels", kernels), SQLITE_OK);
  EXPECT_EQ(kernels, kKernels - 1) << "who looks at no locks looks at no change either";
}

TEST_F(UnfinishedTest, ManyReadersAtOnce) {
  constexpr int kReaders = 6, kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    leave();
    std::vector<DatabaseFile> files(kReaders);
    std::barrier start(kReaders);
    {
      std::vector<std::jthread> readers;
      for (DatabaseFile &file : files)
        readers.emplace_back([&] {
          start.arrive_and_wait();
          file = openDatabaseFile(path, FileUse::kReadMended, 20s);
        });
    }
    int64_t kernels = 0;
    for (DatabaseFile &file : files) {
      EXPECT_EQ(file.warning, "");
      EXPECT_EQ(file.connection.integer("SELECT count(*) FROM kernels", kernels), SQLITE_OK);
      EXPECT_EQ(kernels, kKernels);
    }
    sql("DELETE FROM kernels WHERE rowid = 1");
    for (DatabaseFile &file : files) {
      EXPECT_EQ(file.connection.integer("SELECT count(*) FROM kernels", kernels), SQLITE_OK);
      EXPECT_EQ(kernels, kKernels - 1) << "round " << round;
    }
    if (HasFailure())
      return;
  }
}

// There the lock of another host may not be seen: only a journal that was left alone for long is a dead writer's.
TEST_F(UnfinishedTest, OnANetworkOnlyAnOldJournalIsTakenBack) {
  leave();
  const auto open = [&] { return openDatabaseFile(path, FileUse::kReadMended, 1s, Journal::kRollback); };
  using Clock = fs::file_time_type::clock;
  for (const std::chrono::seconds age : {0s, 30s, -3600s}) {
    fs::last_write_time(path + "-journal", Clock::now() - age);
    EXPECT_EQ(takeBack(Journal::kRollback), FileVerdict::kUnreachable) << age.count();
    const DatabaseFile file = open();
    EXPECT_NE(file.warning.find(kNotEnded), std::string::npos) << file.warning;
    expectUntouched();
  }
  fs::last_write_time(path + "-journal", Clock::now() - 61s);
  const DatabaseFile file = open();
  EXPECT_EQ(file.warning, "");
  EXPECT_EQ(file.path, path);
  EXPECT_TRUE(file.readOnly);
  expectTakenBack();
}

// Its maker died before anything was in it.
TEST_F(UnfinishedTest, AReaderFindsAFileInTheMakingEmpty) {
  fs::remove(path);
  for (const size_t bytes : {0, 512}) {
    writeFile(path, "");
    if (bytes > 0)
      writeFile(path + "-journal", std::string(bytes, '\0'));
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning, true);
    EXPECT_EQ(warning, "") << "as good as none";
    EXPECT_EQ(store->path(), ":memory:");
    EXPECT_NE(refusal().find("holds nothing yet"), std::string::npos) << refusal();
    Result<CacheFile> file = CacheFile::open(path, CacheFile::Check::kRows, CacheFile::Empty::kAccepted);
    ASSERT_TRUE(file) << file.status().toString();
    EXPECT_TRUE(file->isEmpty());
    EXPECT_EQ(file->kernels()->size(), 0u);
    EXPECT_EQ(summarizeCache(*file)->fileBytes, 0) << "the file's, not those of the store in its place";
    store = openStore();
    ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk()) << "the next writer makes it whole";
    expectKernel(*openStore(), 1);
    store.reset();
    fs::remove(path);
  }
}

TEST_F(UnfinishedTest, AReaderLeavesALiveMakerAtIt) {
  const std::string file = scratch.file("new.db");
  sqlite3 *maker = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &maker), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(maker, "BEGIN IMMEDIATE; CREATE TABLE made (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  std::string warning;
  EXPECT_EQ(openStore(file, warning, true)->path(), ":memory:");
  EXPECT_EQ(warning, "");
  EXPECT_TRUE(CacheFile::open(file, CacheFile::Check::kRows, CacheFile::Empty::kAccepted)->isEmpty());
  EXPECT_EQ(sqlite3_exec(maker, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(maker);
  EXPECT_EQ(sqlite3_close(maker), SQLITE_OK);
  EXPECT_EQ(runSql(file, "SELECT count(*) FROM made"), "0");
}

TEST_F(UnfinishedTest, AnEmptyFileThatCannotBeWritten) {
  writeFile(path, "");
  chmod(path.c_str(), 0444);
  chmod(directory.c_str(), 0755);
  asOrdinaryUser([&] {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_NE(warning.find("it is empty and cannot be written"), std::string::npos) << warning;
    EXPECT_EQ(store->path(), ":memory:");
  });
  EXPECT_EQ(readFile(path), "");
}

} // namespace
} // namespace nsa
