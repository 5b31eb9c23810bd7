// Damage is never fatal: each test breaks the file in one way and expects misses, counters and one warning.
#include "tests/cache/store_fixture.h"

#include <filesystem>

#include <sqlite3.h>

namespace nsa {
namespace {

class DamageTest : public StoreTest {
protected:
  void fill(int count = 5) {
    std::unique_ptr<KernelStore> store = openStore();
    for (int i = 0; i < count; ++i) {
      StoredChoice choice = makeChoice(i, true);
      ASSERT_TRUE(store->put(makeKernel(i), &choice).isOk());
    }
  }

  // The file was replaced: a warning that says where it went, an empty store that works, the old bytes kept.
  void expectReplaced(const std::string &reason, const std::string &oldBytes, int number = 1) {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    std::string aside = path + ".damaged-" + std::to_string(number);
    EXPECT_NE(warning.find(reason), std::string::npos) << warning;
    EXPECT_NE(warning.find(aside), std::string::npos) << warning;
    EXPECT_EQ(warning.find('\n'), std::string::npos);
    EXPECT_EQ(store->path(), path);
    EXPECT_FALSE(holdsKernel(*store, 1));
    EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk());
    expectKernel(*store, 1);
    EXPECT_TRUE(readFile(aside) == oldBytes) << "the damaged bytes are kept";
    store.reset();
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
  }
};

TEST_F(DamageTest, FlippedBlobIsSkippedAndCounted) {
  fill();
  std::string content = makeKernel(2).content;
  sql("UPDATE kernels SET binary = CAST(substr(binary, 1, 500) || x'00112233' || substr(binary, 505) AS BLOB)"
      " WHERE content = '" +
      content + "'");
  std::unique_ptr<KernelStore> store = openStore();
  EXPECT_FALSE(holdsKernel(*store, 2));
  EXPECT_EQ(store->counters().damagedRows, 1u);
  EXPECT_EQ(store->counters().misses, 1u);
  expectKernel(*store, 3);
  ASSERT_TRUE(store->put(makeKernel(2), nullptr).isOk()) << "the row is repaired by the next put";
  expectKernel(*store, 2);
}

TEST_F(DamageTest, EveryColumnThatALaunchTrustsIsCovered) {
  const char *changes[] = {
      "manifest = replace(manifest, 'threads 128', 'threads 256')",
      "digest = zeroblob(32)",
      "digest = substr(digest, 1, 31)",
      "digest = zeroblob(0)",
      "binary_bytes = binary_bytes + 1",
      "binary_bytes = -1",
      "binary_bytes = 9223372036854775807",
      "binary = zeroblob(0)",
      "binary = zeroblob(1000)",
      "binary = substr(binary, 1, length(binary) - 1)",
      "content = 'another'",
  };
  for (const char *change : changes) {
    fill(1);
    sql(std::string("PRAGMA foreign_keys = OFF; UPDATE kernels SET ") + change);
    std::unique_ptr<KernelStore> store = openStore();
    std::string content = sql("SELECT content FROM kernels");
    auto found = store->findKernel(content);
    ASSERT_TRUE(found) << change;
    EXPECT_FALSE(found->has_value()) << change;
    EXPECT_EQ(store->counters().damagedRows, 1u) << change;
    store.reset();
    for (const char *ending : {"", "-wal", "-shm"})
      std::filesystem::remove(path + ending);
  }
}

TEST_F(DamageTest, SwappedRowsAreFound) {
  fill(2);
  std::string a = makeKernel(0).content, b = makeKernel(1).content;
  sql("PRAGMA foreign_keys = OFF; UPDATE kernels SET content = 'x' WHERE content = '" + a +
      "';"
      "UPDATE kernels SET content = '" +
      a + "' WHERE content = '" + b +
      "';"
      "UPDATE kernels SET content = '" +
      b + "' WHERE content = 'x'");
  std::unique_ptr<KernelStore> store = openStore();
  EXPECT_FALSE(holdsKernel(*store, 0));
  EXPECT_FALSE(holdsKernel(*store, 1));
  EXPECT_EQ(store->counters().damagedRows, 2u);
}

TEST_F(DamageTest, TruncatedFileIsRenamedAside) {
  fill(20);
  std::string bytes = readFile(path);
  for (size_t length : {size_t{100}, size_t{1000}, size_t{4096}, bytes.size() / 2, bytes.size() - 4096}) {
    SCOPED_TRACE(std::to_string(length) + " of " + std::to_string(bytes.size()) + " bytes");
    writeFile(path, std::string_view(bytes).substr(0, length));
    expectReplaced("it is damaged", bytes.substr(0, length));
    std::filesystem::remove_all(path + ".damaged-1");
    for (const char *ending : {"", "-wal", "-shm"})
      std::filesystem::remove(path + ending);
  }
}

// Less than a page is missing: sqlite opens such a file, so the rows must notice.
TEST_F(DamageTest, FileCutInsideItsLastPageGivesNoWrongKernel) {
  fill(20);
  std::string bytes = readFile(path);
  writeFile(path, std::string_view(bytes).substr(0, bytes.size() - 100));
  std::unique_ptr<KernelStore> store = openStore();
  for (int i = 0; i < 20; ++i)
    if (holdsKernel(*store, i))
      expectKernel(*store, i);
}

TEST_F(DamageTest, EmptyFileIsANewStore) {
  writeFile(path, "");
  std::unique_ptr<KernelStore> store = openStore();
  ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectKernel(*store, 1);
}

// A file whose header is not that of this library, with files beside it that look like its log, is neither used nor
// changed.
TEST_F(DamageTest, FilesThatAreNotOursStayUntouched) {
  sql("CREATE TABLE letters (sender TEXT); INSERT INTO letters VALUES ('someone')");
  std::string unmarked = readFile(path);
  sql("PRAGMA application_id = 252006675");
  std::string marked = readFile(path);
  std::filesystem::remove(path);
  fill();
  std::string ours = readFile(path), lostMark = ours, lostMagic = ours;
  lostMark[68] ^= 1;
  lostMagic[0] ^= 1;
  for (const std::string &bytes : {std::string(10000, 'x'), std::string("dear diary"), unmarked, marked, lostMark,
                                   lostMagic, ours.substr(0, 5), ours.substr(0, 99)}) {
    SCOPED_TRACE(std::to_string(bytes.size()) + " bytes, beginning " + bytes.substr(0, 6));
    writeFile(path, bytes);
    writeFile(path + "-wal", "a log");
    writeFile(path + "-shm", "its index");
    for (bool readOnly : {false, true}) {
      std::string warning;
      std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
      EXPECT_NE(warning.find("it is no kernel database"), std::string::npos) << warning;
      EXPECT_NE(warning.find("name another file"), std::string::npos) << warning;
      EXPECT_NE(warning.find("memory only"), std::string::npos) << warning;
      EXPECT_EQ(store->path(), ":memory:");
      EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk());
      expectKernel(*store, 1);
    }
    EXPECT_TRUE(readFile(path) == bytes);
    EXPECT_EQ(readFile(path + "-wal"), "a log");
    EXPECT_EQ(readFile(path + "-shm"), "its index");
    std::filesystem::directory_iterator entries(directory);
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 3) << "a file was made or removed";
  }
}

// A log of another program's database holds what its file does not have yet.
TEST_F(DamageTest, ForeignDatabaseWithALogStaysUntouched) {
  sqlite3 *database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA journal_mode = WAL; CREATE TABLE letters (sender TEXT)", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  std::string bytes = readFile(path), log = readFile(path + "-wal");
  ASSERT_FALSE(log.empty());
  std::string warning;
  EXPECT_EQ(openStore(path, warning)->path(), ":memory:");
  EXPECT_TRUE(readFile(path) == bytes);
  EXPECT_TRUE(readFile(path + "-wal") == log);
  sqlite3_close(database);
}

// The header must say so from the first moment, also when nothing ever moved the log into the file.
TEST_F(DamageTest, ANewFileIsOursByItsHeader) {
  std::unique_ptr<KernelStore> store = openStore();
  EXPECT_EQ(readFile(path).substr(68, 4), "NSAK");
}

TEST_F(DamageTest, MissingTableIsDamage) {
  fill();
  sql("DROP TABLE evidence; PRAGMA wal_checkpoint(TRUNCATE)");
  expectReplaced("it is damaged", readFile(path));
}

TEST_F(DamageTest, NamesOfRenamedFilesCount) {
  for (int n = 1; n <= 3; ++n) {
    std::string bytes = damagedDatabase(1000 + static_cast<size_t>(n));
    writeFile(path, bytes);
    for (const char *ending : {"-wal", "-shm"})
      std::filesystem::remove(path + ending);
    expectReplaced("it is damaged", bytes, n);
  }
}

// A log left beside a damaged file must not be replayed into the new one.
TEST_F(DamageTest, LogGoesWithItsFile) {
  std::string bytes = damagedDatabase(8192), log(8192, 'y');
  writeFile(path, bytes);
  writeFile(path + "-wal", log);
  expectReplaced("it is damaged", bytes);
  EXPECT_TRUE(readFile(path + ".damaged-1-wal") == log);
}

// The log of a killed process may be good where the file is not: what it brings back must be right.
TEST_F(DamageTest, FileLostBesideAGoodLogGivesNoWrongKernel) {
  std::string log;
  {
    std::unique_ptr<KernelStore> store = openStore();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(store->put(makeKernel(i), nullptr).isOk());
    log = readFile(path + "-wal");
  }
  writeFile(path, damagedDatabase(8192));
  writeFile(path + "-wal", log);
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning);
  for (int i = 0; i < 5; ++i)
    if (holdsKernel(*store, i))
      expectKernel(*store, i);
}

TEST_F(DamageTest, NewerSchemaIsLeftUntouched) {
  fill();
  sql("PRAGMA user_version = 4; PRAGMA wal_checkpoint(TRUNCATE)");
  std::string bytes = readFile(path);
  for (bool readOnly : {false, true}) {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
    EXPECT_NE(warning.find("written by a newer version"), std::string::npos) << warning;
    EXPECT_EQ(store->path(), ":memory:");
    EXPECT_FALSE(holdsKernel(*store, 1));
    EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk()) << "works without the file";
    store.reset();
    EXPECT_TRUE(readFile(path) == bytes) << "the file changed";
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".damaged-1"));
}

TEST_F(DamageTest, ReadOnlyStoreLeavesADamagedFileWhereItIs) {
  std::string bytes = damagedDatabase(5000);
  writeFile(path, bytes);
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning, true);
  EXPECT_NE(warning.find("it is damaged"), std::string::npos) << warning;
  EXPECT_EQ(store->path(), ":memory:");
  EXPECT_TRUE(readFile(path) == bytes);
  EXPECT_FALSE(std::filesystem::exists(path + ".damaged-1"));
}

// A file whose header goes while it is open is not provably ours any more.
TEST_F(DamageTest, HeaderLostInUseLeavesTheFileAlone) {
  fill(40);
  std::unique_ptr<KernelStore> store = openStore();
  std::string text(readFile(path).size(), 'x');
  writeFile(path, text);
  for (int i = 0; i < 40; ++i)
    EXPECT_FALSE(holdsKernel(*store, i));
  EXPECT_EQ(store->counters().replacedFiles, 0u);
  EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectKernel(*store, 1);
  EXPECT_EQ(store->path(), ":memory:");
  EXPECT_TRUE(readFile(path) == text);
  EXPECT_FALSE(std::filesystem::exists(path + ".damaged-1"));
}

// Pages overwritten while the store is open: lookups miss, then the file makes room for a new one.
TEST_F(DamageTest, CorruptionInUseIsAMissAndHeals) {
  fill(40);
  std::unique_ptr<KernelStore> store = openStore();
  std::string bytes = readFile(path);
  for (size_t at = 4096; at < bytes.size(); ++at)
    bytes[at] = static_cast<char>(at * 31);
  writeFile(path, bytes);
  for (int i = 0; i < 40; ++i) {
    EXPECT_FALSE(holdsKernel(*store, i));
    StoredChoice choice = makeChoice(i, true);
    EXPECT_FALSE((*store->findChoice(choice.problem, choice.device)).has_value());
  }
  StoreCounters counters = store->counters();
  EXPECT_EQ(counters.misses, 80u);
  EXPECT_GE(counters.damagedRows, 1u);
  EXPECT_EQ(counters.replacedFiles, 1u);
  EXPECT_NE(store->trouble().find("a new one is made"), std::string::npos) << store->trouble();
  EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectKernel(*store, 1);
  EXPECT_EQ(store->path(), path);
  EXPECT_TRUE(std::filesystem::exists(path + ".damaged-1"));
}

// Bytes flipped anywhere: whatever sqlite makes of it, nothing but a right kernel or a miss comes out.
TEST_F(DamageTest, RandomFlipsNeverGiveAWrongKernel) {
  fill(10);
  std::string bytes = readFile(path);
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::string damaged = bytes;
    unsigned state = seed * 2654435761u;
    for (int flip = 0; flip < 20; ++flip) {
      state = state * 1664525u + 1013904223u;
      damaged[state % damaged.size()] ^= static_cast<char>(1u << (state >> 29));
    }
    for (const auto &entry : std::filesystem::directory_iterator(directory))
      std::filesystem::remove(entry.path());
    writeFile(path, damaged);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    for (int i = 0; i < 10; ++i) {
      if (holdsKernel(*store, i))
        expectKernel(*store, i);
      ASSERT_TRUE(store->findChoice(makeChoice(i, true).problem, "gpu sm_90a"));
    }
    (void)store->put(makeKernel(11), nullptr);
  }
}

} // namespace
} // namespace nsa
