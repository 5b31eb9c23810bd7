// Places that cannot be written or must not be trusted. Root ignores permission bits, so the tests that need them
// run in a child that has given root up; the others use means that bind root too (a file where a directory should
// be, /proc, the store's own read-only option).
#include "tests/cache/store_fixture.h"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace nsa {
namespace {

class MediumTest : public StoreTest {
protected:
  void fill() {
    StoredChoice choice = makeChoice(1, true);
    ASSERT_TRUE(openStore()->put(makeKernel(1), &choice).isOk());
  }

  // What every store that cannot keep anything still does.
  void expectWorksInMemory(KernelStore &store) {
    EXPECT_EQ(store.path(), ":memory:");
    EXPECT_TRUE(store.put(makeKernel(7), nullptr).isOk());
    expectKernel(store, 7);
  }
};

TEST_F(MediumTest, ReadOnlyStoreReadsAndRefusesPuts) {
  fill();
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning, true);
  EXPECT_EQ(warning, "") << "asked for, so no surprise";
  EXPECT_TRUE(store->isReadOnly());
  expectKernel(*store, 1);
  Status status = store->put(makeKernel(2), nullptr);
  EXPECT_EQ(status.code(), ErrorCode::kIoError);
  EXPECT_EQ(store->counters().failedWrites, 1u);
  EXPECT_FALSE(holdsKernel(*store, 2));
}

TEST_F(MediumTest, ReadOnlyStoreCreatesNothing) {
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(directory + "/sub/kernels.db", warning, true);
  EXPECT_EQ(warning, "") << "as good as an empty one";
  EXPECT_EQ(store->path(), ":memory:");
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  writeFile(directory + "/file", "x");
  store = openStore(directory + "/file/sub/kernels.db", warning, true);
  EXPECT_NE(warning.find("Not a directory"), std::string::npos) << warning;
}

TEST_F(MediumTest, ReadOnlyFileIsUsedWithAWarning) {
  fill();
  chmod(path.c_str(), 0444);
  chmod(directory.c_str(), 0755);
  asOrdinaryUser([&] {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_NE(warning.find("cannot be written"), std::string::npos) << warning;
    EXPECT_TRUE(store->isReadOnly());
    expectKernel(*store, 1);
    StoredChoice choice = makeChoice(1, true);
    EXPECT_TRUE(store->findChoice(choice.problem, choice.device)->has_value());
    EXPECT_FALSE(store->put(makeKernel(2), nullptr).isOk());
    EXPECT_EQ(store->counters().failedWrites, 1u);
  });
}

TEST_F(MediumTest, ReadOnlyDirectoryIsUsedWithAWarning) {
  fill();
  chmod(path.c_str(), 0644);
  chmod(directory.c_str(), 0555);
  asOrdinaryUser([&] {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_NE(warning.find("cannot be written"), std::string::npos) << warning;
    expectKernel(*store, 1);
    EXPECT_FALSE(store->put(makeKernel(2), nullptr).isOk());
  });
  chmod(directory.c_str(), 0755);
}

TEST_F(MediumTest, DirectoryThatCannotBeWrittenAndHasNoFile) {
  chmod(directory.c_str(), 0555);
  asOrdinaryUser([&] {
    for (const std::string &file : {path, directory + "/sub/kernels.db"}) {
      std::string warning;
      std::unique_ptr<KernelStore> store = openStore(file, warning);
      EXPECT_NE(warning.find("is not used"), std::string::npos) << warning;
      expectWorksInMemory(*store);
      (void)openStore(file, warning, true);
      EXPECT_NE(warning.find("nothing can be made in"), std::string::npos) << warning;
    }
  });
  chmod(directory.c_str(), 0755);
}

TEST_F(MediumTest, PathUnderARegularFile) {
  writeFile(directory + "/file", "x");
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(directory + "/file/sub/kernels.db", warning);
  EXPECT_NE(warning.find("is not used"), std::string::npos) << warning;
  expectWorksInMemory(*store);
}

TEST_F(MediumTest, DirectoryThatCannotBeMade) {
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore("/proc/nsa-no-such/kernels.db", warning);
  EXPECT_NE(warning.find("cannot be made"), std::string::npos) << warning;
  expectWorksInMemory(*store);
}

TEST_F(MediumTest, PathIsADirectory) {
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(directory, warning);
  EXPECT_NE(warning.find("is not used"), std::string::npos) << warning;
  expectWorksInMemory(*store);
  EXPECT_TRUE(std::filesystem::is_directory(directory));
}

TEST_F(MediumTest, WorldWritableFileIsRefused) {
  fill();
  chmod(path.c_str(), 0666);
  for (bool readOnly : {false, true}) {
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
    EXPECT_NE(warning.find("everyone may write '"), std::string::npos) << warning;
    EXPECT_FALSE(holdsKernel(*store, 1)) << "what anyone may have planted is not run";
    expectWorksInMemory(*store);
  }
}

TEST_F(MediumTest, WorldWritableDirectoryIsRefused) {
  fill();
  for (mode_t mode : {0777, 01777}) { // also with the sticky bit: a planted log would be replayed
    chmod(directory.c_str(), mode);
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_NE(warning.find("everyone may write folder '"), std::string::npos) << warning;
    EXPECT_FALSE(holdsKernel(*store, 1));
    expectWorksInMemory(*store);
  }
}

TEST_F(MediumTest, WhatBelongsToAnotherUserIsRefused) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  fill();
  const struct {
    const std::string &file;
    const char *reason;
  } rows[] = {{path, "' belongs to another user (uid 65534, not 0 and not root)"},
              {directory, "' belongs to another user"}};
  for (const auto &row : rows) {
    ASSERT_EQ(chown(row.file.c_str(), 65534, 65534), 0);
    for (bool readOnly : {false, true}) {
      std::string warning;
      std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
      EXPECT_NE(warning.find(row.reason), std::string::npos) << warning;
      EXPECT_FALSE(holdsKernel(*store, 1));
    }
    ASSERT_EQ(chown(row.file.c_str(), 0, 0), 0);
  }
  expectKernel(*openStore(), 1);
}

// Permissions count where the file is, not where a link to it stands.
TEST_F(MediumTest, LinkIntoAWorldWritableDirectoryIsRefused) {
  std::string open = directory + "/open";
  ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
  chmod(open.c_str(), 0777);
  ASSERT_EQ(symlink(open.c_str(), (directory + "/link").c_str()), 0);
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(directory + "/link/kernels.db", warning);
  EXPECT_NE(warning.find("everyone may write folder '"), std::string::npos) << warning;
}

TEST_F(MediumTest, OddFileNames) {
  path = directory + "/a?b#c%20 d.db";
  fill();
  chmod(directory.c_str(), 0555);
  asOrdinaryUser([&] { // through the URI of an immutable file
    std::string warning;
    expectKernel(*openStore(path, warning), 1);
    EXPECT_NE(warning.find("cannot be written"), std::string::npos) << warning;
  });
  chmod(directory.c_str(), 0700);
}

} // namespace
} // namespace nsa
