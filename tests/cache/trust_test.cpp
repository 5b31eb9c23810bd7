// What other users of a machine may try with the files of a cache: logs planted beside a database, folders further up,
// links that lead nowhere, files that are swapped while they are opened.
#include "tests/cache/fault_vfs.h"
#include "tests/cache/pack_fixture.h"

#include <chrono>
#include <filesystem>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace nsa {
namespace {

using namespace std::chrono_literals;
using test::FaultVfs;
namespace fs = std::filesystem;

constexpr uid_t kOther = 65534;

class FileTrustTest : public PackTest {
protected:
  // Opens the database and expects it to be worked without; the warning.
  std::string databaseRefusal(bool readOnly = false) const {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store =
        KernelStore::open({.path = path, .readOnly = readOnly, .lockedWait = 50ms}, warning);
    EXPECT_TRUE(store) << store.status().toString();
    EXPECT_EQ((*store)->path(), ":memory:") << warning;
    EXPECT_FALSE(holdsKernel(**store, 1)) << "what was refused is not read";
    EXPECT_NE(warning.find("cache file '" + path + "' is not used: "), std::string::npos) << warning;
    return warning;
  }
  void expectBothRefused(const std::string &reason) {
    for (const bool readOnly : {true, false})
      EXPECT_NE(databaseRefusal(readOnly).find(reason), std::string::npos) << databaseRefusal(readOnly);
    EXPECT_NE(refusal().find(reason), std::string::npos) << refusal();
  }
  void expectBothServe() {
    expectKernel(*openStore(), 1);
    expectKernel(*openPack(), 1);
  }
  // Database and pack in a folder of their own, below another one.
  void fillBelow() {
    path = scratch.file("above/folder/kernels.db");
    packPath = scratch.file("above/folder/kernels.nsapack");
    fill({1}, path);
    ASSERT_TRUE(exportFrom(path, packPath));
  }
};

// Kernel 2 lies in the log alone, as machine code of another user would.
TEST_F(FileTrustTest, ALogOfAnotherUserIsNotReplayed) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  fill({1}, path);
  const std::string database = readFile(path);
  std::string log;
  {
    const std::unique_ptr<KernelStore> store = openStore();
    ASSERT_TRUE(store->put(makeKernel(2), nullptr).isOk());
    log = readFile(path + "-wal");
  }
  const auto plant = [&](uid_t owner) {
    writeFile(path, database);
    writeFile(path + "-wal", log);
    ASSERT_EQ(chown((path + "-wal").c_str(), owner, owner), 0);
  };
  plant(kOther);
  for (const bool readOnly : {true, false}) {
    const std::string warning = databaseRefusal(readOnly);
    EXPECT_NE(warning.find("'" + path + "-wal' belongs to another user (uid 65534, not 0 and not root)"),
              std::string::npos)
        << warning;
  }
  EXPECT_TRUE(readFile(path) == database) << "nothing of the log was taken over";
  plant(0);
  expectKernel(*openStore(), 2); // so the log does hold it
}

TEST_F(FileTrustTest, FilesBesideItCountAsItself) {
  fill({1}, path);
  ASSERT_TRUE(exportFrom(path, packPath));
  for (const char *ending : {"-wal", "-shm", "-journal"}) {
    for (const std::string &file : {path, packPath}) {
      const std::string beside = file + ending;
      writeFile(beside, "");
      for (const mode_t mode : {0664, 0602}) {
        ASSERT_EQ(chmod(beside.c_str(), mode), 0);
        const std::string reason = "may write '" + beside + "' (mode ";
        const std::string found = file == path ? databaseRefusal() : refusal();
        EXPECT_NE(found.find(reason), std::string::npos) << found;
      }
      fs::remove(beside);
      ASSERT_EQ(symlink(packPath.c_str(), beside.c_str()), 0);
      const std::string found = file == path ? databaseRefusal() : refusal();
      EXPECT_NE(found.find("'" + beside + "' is a link"), std::string::npos) << found;
      fs::remove(beside);
    }
  }
  expectBothServe();
}

TEST_F(FileTrustTest, AGroupIsAsForeignAsEveryone) {
  fillBelow();
  const std::string group = "group " + std::to_string(getegid()) + " may write ";
  const std::string folder = scratch.file("above/folder");
  ASSERT_EQ(chmod(folder.c_str(), 0770), 0);
  expectBothRefused(group + "folder '" + folder + "' (mode 0770)");
  ASSERT_EQ(chmod(folder.c_str(), 0750), 0);
  expectBothServe();
  ASSERT_EQ(chmod(path.c_str(), 0660), 0);
  ASSERT_EQ(chmod(packPath.c_str(), 0660), 0);
  expectBothRefused(group + "'" + folder + "/kernels."); // .db and .nsapack
}

TEST_F(FileTrustTest, FoldersFurtherUpCount) {
  fillBelow();
  const std::string above = scratch.file("above");
  ASSERT_EQ(chmod(above.c_str(), 0777), 0);
  expectBothRefused("everyone may write folder '" + above + "' (mode 0777)");
  ASSERT_EQ(chmod(above.c_str(), 01777), 0); // as /tmp
  expectBothServe();
  ASSERT_EQ(chmod(above.c_str(), 0755), 0);
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(above.c_str(), kOther, kOther), 0);
  expectBothRefused("folder '" + above + "' belongs to another user (uid 65534");
  ASSERT_EQ(chown(above.c_str(), 0, 0), 0);
}

TEST_F(FileTrustTest, ALinkThatLeadsNowhereMakesNothing) {
  const std::string open = scratch.file("open");
  ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open.c_str(), 0777), 0);
  ASSERT_EQ(symlink((open + "/kernels.db").c_str(), path.c_str()), 0);
  for (const bool readOnly : {true, false})
    EXPECT_NE(databaseRefusal(readOnly).find("'" + path + "' is a link, which is not followed"), std::string::npos);
  fs::remove(path);
  ASSERT_EQ(symlink((open + "/none").c_str(), scratch.file("link").c_str()), 0);
  path = scratch.file("link/kernels.db");
  EXPECT_NE(databaseRefusal().find("'" + scratch.file("link") + "' is a link"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(open)) << "everyone may write there";
}

// Files are swapped at the worst moment: after the judgement, and back before anything looks again.
class SwappedFileTest : public FileTrustTest {
protected:
  void SetUp() override {
    fill({1}, path);
    fill({2}, scratch.file("planted.db"));
    ASSERT_TRUE(exportFrom(path, packPath));
    ASSERT_TRUE(exportFrom(scratch.file("planted.db"), scratch.file("planted.nsapack")));
  }
  void swapAt(const std::string &file, int openings) {
    const std::string planted = scratch.file("planted") + fs::path(file).extension().string();
    const auto swap = [file, planted] {
      fs::rename(file, file + ".aside");
      fs::rename(planted, file);
      fs::rename(file + ".aside", planted);
    };
    const auto left = std::make_shared<int>(openings);
    FaultVfs::aroundOpening(
        [=] {
          if (*left > 0)
            swap();
        },
        [=] {
          if (*left > 0)
            swap();
          --*left;
        });
  }

private:
  FaultVfs disk;
};

TEST_F(SwappedFileTest, ADatabaseIsJudgedAndOpenedAnew) {
  for (const bool readOnly : {true, false}) {
    swapAt(path, 1);
    std::string warning;
    const std::unique_ptr<KernelStore> store = openStore(path, warning, readOnly);
    EXPECT_EQ(warning, "");
    expectKernel(*store, 1);
    EXPECT_FALSE(holdsKernel(*store, 2)) << "of the file that was swapped in";
  }
}

TEST_F(SwappedFileTest, ADatabaseThatIsAlwaysSwappedIsWorkedWithout) {
  for (const bool readOnly : {true, false}) {
    swapAt(path, 1 << 20);
    const std::string warning = databaseRefusal(readOnly);
    EXPECT_NE(warning.find("another file took its name each time it was opened"), std::string::npos) << warning;
  }
}

TEST_F(SwappedFileTest, SoIsAPack) {
  swapAt(packPath, 1);
  const std::unique_ptr<Pack> pack = openPack();
  expectKernel(*pack, 1);
  swapAt(packPath, 1 << 20);
  EXPECT_NE(refusal().find("another file took its name each time it was opened"), std::string::npos) << refusal();
}

// Where others may write, a pipe can take the place of a pack between a look and the opening, which would wait for it.
TEST_F(SwappedFileTest, WhatIsNotTrustedIsNotOpened) {
  ASSERT_EQ(chmod(directory.c_str(), 0777), 0);
  int openings = 0;
  FaultVfs::aroundOpening([&] { ++openings; }, [] {});
  for (const std::string &file : {path, packPath}) {
    EXPECT_FALSE(isPackFile(file)) << file;
    const Result<CacheFile> opened = CacheFile::open(file);
    ASSERT_FALSE(opened) << file;
    EXPECT_NE(opened.status().toString().find("everyone may write"), std::string::npos) << opened.status().toString();
  }
  EXPECT_EQ(openings, 0);
  ASSERT_EQ(chmod(directory.c_str(), 0700), 0);
  EXPECT_TRUE(isPackFile(packPath));
  EXPECT_EQ(openings, 1);
}

// A key is judged by what is open. A link that changes between the two would have one file judged and another one read.
TEST_F(FileTrustTest, AKeyThatIsReadIsTheKeyThatWasJudged) {
  const std::string good = scratch.write("good", SecretKey::generate().publicKey().text());
  const std::string open = scratch.write("open", SecretKey::generate().publicKey().text());
  ASSERT_EQ(chmod(open.c_str(), 0666), 0);
  const std::string link = scratch.file("key");
  ASSERT_EQ(symlink(good.c_str(), link.c_str()), 0);
  const Result<PublicKey> expected = PublicKey::read(good);
  ASSERT_TRUE(expected) << expected.status().toString();
  const std::jthread swapper([&](const std::stop_token &stop) {
    for (bool isOpen = true; !stop.stop_requested(); isOpen = !isOpen) {
      fs::create_symlink(isOpen ? open : good, link + ".new");
      fs::rename(link + ".new", link);
    }
  });
  for (int reads = 0; reads < 2000; ++reads)
    if (const Result<PublicKey> key = PublicKey::read(link); key)
      ASSERT_EQ(key->hex(), expected->hex()) << "everyone may write the file of this key";
}

TEST_F(FileTrustTest, AKeyIsHeldToTheSameRule) {
  const std::string key = scratch.write("above/folder/k.public", SecretKey::generate().publicKey().text());
  const auto reason = [&] { return PublicKey::read(key).status().toString(); };
  ASSERT_EQ(chmod(scratch.file("above/folder").c_str(), 0755), 0);
  ASSERT_EQ(chmod(scratch.file("above").c_str(), 0755), 0);
  EXPECT_EQ(reason(), "ok");
  ASSERT_EQ(chmod(scratch.file("above").c_str(), 0777), 0);
  EXPECT_NE(reason().find("everyone may write folder '" + scratch.file("above") + "'"), std::string::npos) << reason();
  ASSERT_EQ(chmod(scratch.file("above").c_str(), 0755), 0);
  ASSERT_EQ(chmod(key.c_str(), 0664), 0);
  EXPECT_NE(reason().find("may write '" + key + "' (mode 0664)"), std::string::npos) << reason();
}

} // namespace
} // namespace nsa
