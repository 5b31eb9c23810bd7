// Files that take their names when they are complete, also where the file system knows no renaming that refuses.
#include "cache/database/replacing_file.h"
#include "tests/harness/scratch.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {
int renamingError = 0; // what renameat2 fails with, as NFS does; 0: the real one
int maskCalls = 0;
} // namespace

// In the place of libc's, for all of this program.
extern "C" int renameat2(int fromDirectory, const char *from, int toDirectory, const char *to,
                         unsigned flags) noexcept {
  if (renamingError == 0)
    return static_cast<int>(syscall(SYS_renameat2, fromDirectory, from, toDirectory, to, flags));
  errno = renamingError;
  return -1;
}
extern "C" mode_t umask(mode_t mask) noexcept {
  ++maskCalls;
  return static_cast<mode_t>(syscall(SYS_umask, mask));
}

namespace nsa {
namespace {

using Existing = ReplacingFile::Existing;

class ReplacingFileTest : public testing::Test {
protected:
  ~ReplacingFileTest() override { renamingError = 0; }

  Status write(const std::string &text, Existing existing, const std::string &meanwhile = "") {
    Result<ReplacingFile> file = ReplacingFile::create(path, existing);
    if (!file)
      return file.status();
    test::writeFile(file->temporaryPath(), text);
    if (!meanwhile.empty())
      test::writeFile(path, meanwhile);
    return file->commit();
  }
  ptrdiff_t files() const {
    std::filesystem::directory_iterator entries(scratch.path());
    return std::distance(begin(entries), end(entries));
  }

  test::Scratch scratch;
  std::string path = scratch.file("file");
};

TEST_F(ReplacingFileTest, ANameThatIsTakenMeanwhileStays) {
  for (const int error : {0, EINVAL, ENOSYS}) {
    SCOPED_TRACE(error);
    renamingError = error;
    ASSERT_TRUE(write("first", Existing::kRefuse).isOk());
    EXPECT_EQ(test::readFile(path), "first");
    EXPECT_EQ(files(), 1);
    unlink(path.c_str());
    const Status refused = write("second", Existing::kRefuse, "another's");
    EXPECT_NE(refused.toString().find("exists already"), std::string::npos) << refused.toString();
    EXPECT_EQ(test::readFile(path), "another's");
    ASSERT_TRUE(write("third", Existing::kReplace).isOk());
    EXPECT_EQ(test::readFile(path), "third");
    EXPECT_EQ(files(), 1) << "no temporary file is left";
    unlink(path.c_str());
  }
  renamingError = EIO;
  EXPECT_NE(write("fourth", Existing::kRefuse).toString().find("cannot be put in place"), std::string::npos);
  EXPECT_EQ(files(), 0);
}

// The mask is one of the whole process: a file that another thread makes meanwhile would be everyone's to write.
TEST_F(ReplacingFileTest, RightsAreThoseOfAnyNewFileAndTheMaskIsNotTouched) {
  for (const mode_t mask : {0022, 0002, 0077}) {
    const mode_t before = umask(mask);
    maskCalls = 0;
    const Status status = write("text", Existing::kReplace);
    EXPECT_EQ(maskCalls, 0);
    umask(before);
    ASSERT_TRUE(status.isOk()) << status.toString();
    struct stat facts{};
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0644 & ~mask);
    unlink(path.c_str());
  }
}

TEST_F(ReplacingFileTest, WhatAKilledWriterLeftGoesWithTheNextFile) {
  const auto age = [&](const std::string &name) {
    const timespec times[2] = {{.tv_sec = time(nullptr) - 7200, .tv_nsec = 0},
                               {.tv_sec = time(nullptr) - 7200, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, scratch.file(name).c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  };
  const std::string drawn = "file.0123456789abcdef";
  for (const std::string &name : {drawn, drawn + "-journal"}) {
    scratch.write(name, "abandoned");
    age(name);
  }
  const std::vector<std::string> others = {"file.0123456789abcdeg", "file.0123456789abcdef0", "other.0123456789abcdef",
                                           "file.0123", "filex0123456789abcdef"};
  for (const std::string &name : others) {
    scratch.write(name, "of others");
    age(name);
  }
  scratch.write("file.fedcba9876543210", "of a writer that lives");
  ASSERT_EQ(symlink("other.0123456789abcdef", scratch.file("file.aaaaaaaaaaaaaaaa").c_str()), 0);
  age("file.aaaaaaaaaaaaaaaa");
  ASSERT_TRUE(write("text", Existing::kReplace).isOk());
  EXPECT_EQ(files(), static_cast<ptrdiff_t>(others.size()) + 3) << "the file, the young one and the link";
  EXPECT_FALSE(std::filesystem::exists(scratch.file(drawn)));
  EXPECT_TRUE(std::filesystem::exists(scratch.file("file.fedcba9876543210")));
}

// A large pack on a slow disk, or a machine that slept: the time says nothing, the lock does.
TEST_F(ReplacingFileTest, AWriterThatTakesHoursKeepsItsFile) {
  Result<ReplacingFile> slow = ReplacingFile::create(path, Existing::kReplace);
  ASSERT_TRUE(slow) << slow.status().toString();
  const std::string log = slow->temporaryPath() + "-journal";
  test::writeFile(log, "of sqlite");
  const timespec old = {.tv_sec = time(nullptr) - 7200, .tv_nsec = 0}, times[2] = {old, old};
  for (const std::string &file : {slow->temporaryPath(), log})
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  ReplacingFile moved = std::move(*slow);
  ASSERT_TRUE(write("fast", Existing::kReplace).isOk());
  EXPECT_TRUE(std::filesystem::exists(log));
  EXPECT_TRUE(moved.commit().isOk()) << "its file was there";
  ASSERT_TRUE(write("next", Existing::kReplace).isOk());
  EXPECT_FALSE(std::filesystem::exists(log)) << "its writer is gone";
}

TEST_F(ReplacingFileTest, WhatIsNoFileStays) {
  const std::string target = scratch.write("target", "kept");
  ASSERT_EQ(symlink(target.c_str(), path.c_str()), 0);
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace})
    EXPECT_FALSE(write("text", existing).isOk());
  EXPECT_EQ(test::readFile(target), "kept");
  path = scratch.file("none/file");
  EXPECT_NE(write("text", Existing::kReplace).toString().find("cannot be made"), std::string::npos);
}

} // namespace
} // namespace nsa
