// Disks of a network: known by their kind, and used with the journal that needs no shared memory.
#include "cache/database/file_system.h"
#include "tests/cache/store_fixture.h"

#include <filesystem>

namespace nsa {
namespace {

class JournalTest : public StoreTest {
protected:
  std::unique_ptr<KernelStore> openRollback() const {
    KernelStore::Options options;
    options.path = path;
    options.journal = Journal::kRollback;
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open(options, warning);
    EXPECT_TRUE(store);
    EXPECT_EQ(warning, "");
    return store ? std::move(*store) : nullptr;
  }
};

TEST_F(JournalTest, FileSystemsOfNetworksAreKnown) {
  EXPECT_EQ(networkFileSystem(0x6969), "NFS");
  EXPECT_EQ(networkFileSystem(0xff534d42), "CIFS");
  EXPECT_EQ(networkFileSystem(0xffffffffff534d42), "CIFS") << "where f_type is signed";
  EXPECT_EQ(networkFileSystem(0x0bd00bd0), "Lustre");
  EXPECT_EQ(networkFileSystem(0x47504653), "GPFS");
  EXPECT_EQ(networkFileSystem(0xef53), "") << "ext4";
  EXPECT_EQ(networkFileSystem(0x01021994), "") << "tmpfs";
  EXPECT_EQ(networkFileSystemOf("/proc"), "");
  EXPECT_EQ(networkFileSystemOf("/no/such/folder"), "");
}

TEST_F(JournalTest, ANewFileHasARollbackJournal) {
  {
    std::unique_ptr<KernelStore> store = openRollback();
    EXPECT_NE(store->note().find("a rollback journal is used"), std::string::npos) << store->note();
    EXPECT_EQ(store->trouble(), "") << "nothing is lost by it";
    const StoredChoice choice = makeChoice(1, true);
    ASSERT_TRUE(store->put(makeKernel(1), &choice).isOk());
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
    EXPECT_EQ(sql("PRAGMA journal_mode"), "delete");
  }
  expectKernel(*openRollback(), 1);
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

// As when a home directory moves to a server, with a log that was left behind.
TEST_F(JournalTest, AFileWithALogIsTakenOver) {
  std::string log;
  {
    std::unique_ptr<KernelStore> store = openStore();
    EXPECT_EQ(store->note(), "");
    ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk());
    std::filesystem::copy_file(path, path + ".copy");
    std::filesystem::copy_file(path + "-wal", path + ".copy-wal");
  }
  path += ".copy";
  ASSERT_GT(std::filesystem::file_size(path + "-wal"), 0u);
  {
    std::unique_ptr<KernelStore> store = openRollback();
    expectKernel(*store, 1);
    ASSERT_TRUE(store->put(makeKernel(2), nullptr).isOk());
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
    std::unique_ptr<KernelStore> second = openRollback(); // the lock is not kept
    expectKernel(*second, 2);
    ASSERT_TRUE(second->put(makeKernel(3), nullptr).isOk());
    expectKernel(*store, 3);
  }
  EXPECT_EQ(sql("PRAGMA journal_mode"), "delete");
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

} // namespace
} // namespace nsa
