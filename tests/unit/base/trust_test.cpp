#include "runtime/base/trust.h"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace nsa {
namespace {

class TrustTest : public testing::Test {
protected:
  test::Scratch scratch;
  std::string above = scratch.file("above"), folder = above + "/folder", file = folder + "/file";

  void SetUp() override {
    ASSERT_EQ(mkdir(above.c_str(), 0700), 0);
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    test::writeFile(file, "x");
    ASSERT_EQ(chmod(file.c_str(), 0644), 0);
    ASSERT_EQ(whyNotTrusted(file), "") << "the folder of temporary files must be trusted for these tests";
  }

  void expectMode(const std::string &path, mode_t mode, const std::string &reason) const {
    struct stat before{};
    ASSERT_EQ(stat(path.c_str(), &before), 0);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    if (reason.empty())
      EXPECT_EQ(whyNotTrusted(file), "") << path << " with mode " << std::oct << mode;
    else
      EXPECT_EQ(whyNotTrusted(file).substr(0, reason.size()), reason) << path << " with mode " << std::oct << mode;
    ASSERT_EQ(chmod(path.c_str(), before.st_mode & 07777), 0);
  }
};

TEST_F(TrustTest, EveryoneAndAGroupMayNotWrite) {
  const std::string group = "group " + std::to_string(getegid());
  expectMode(file, 0666, "everyone may write '" + file + "' (mode 0666)");
  expectMode(file, 0664, group + " may write '" + file + "' (mode 0664)");
  expectMode(folder, 0757, "everyone may write folder '" + folder + "' (mode 0757)");
  expectMode(folder, 0775, group + " may write folder '" + folder + "' (mode 0775)");
  expectMode(above, 0777, "everyone may write folder '" + above + "' (mode 0777)");
  expectMode(above, 0770, group + " may write folder '" + above + "' (mode 0770)");
  expectMode(file, 0444, "");
  expectMode(folder, 0755, "");
  expectMode(above, 0555, "");
}

TEST_F(TrustTest, TheReasonEndsWithACure) {
  expectMode(file, 0666,
             "everyone may write '" + file +
                 "' (mode 0666): code could be planted in it (chmod go-w it, if it is trusted, or remove it)");
  expectMode(folder, 0777,
             "everyone may write folder '" + folder +
                 "' (mode 0777): code could be planted there (chmod go-w it, or use a folder of your own)");
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(whyNotTrusted(file).ends_with("(copy it, if it is trusted, or remove it)")) << whyNotTrusted(file);
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(whyNotTrusted(file).ends_with("(use a folder of your own)")) << whyNotTrusted(file);
  ASSERT_EQ(chown(folder.c_str(), 0, 0), 0);
}

// Only its owner can rename what is in such a folder, but everyone can make something new there.
TEST_F(TrustTest, AStickyFolderMayLieOnTheWay) {
  expectMode(above, 01777, "");
  expectMode(above, 01770, "");
  expectMode(folder, 01777, "everyone may write folder '" + folder + "' (mode 1777)");
  expectMode(file, 01666, "everyone may write '" + file + "' (mode 1666)");
}

TEST_F(TrustTest, NothingOnTheWayBelongsToAnotherUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chmod(above.c_str(), 01777), 0);
  for (const std::string &given : {file, folder, above}) {
    ASSERT_EQ(chown(given.c_str(), 65534, 65534), 0);
    const std::string what = (given == file ? "'" : "folder '") + given + "' belongs to another user (uid 65534, not 0";
    EXPECT_EQ(whyNotTrusted(file).substr(0, what.size()), what);
    // Root's files are trusted by everyone, and the files of a user by that user.
    ASSERT_EQ(chown(given.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(whyNotTrusted(file), "");
}

// It may be made where only this user can make something.
TEST_F(TrustTest, AMissingFileHasNoFaultAndAMissingFolderHas) {
  EXPECT_EQ(whyNotTrusted(folder + "/none"), "");
  const std::string missing = "'" + above + "/none' cannot be looked at: No such file";
  EXPECT_EQ(whyNotTrusted(above + "/none/none").substr(0, missing.size()), missing);
  const std::string under = "'" + file + "/none' cannot be looked at: Not a directory";
  EXPECT_EQ(whyNotTrusted(file + "/none"), under);
}

TEST_F(TrustTest, ALinkIsNotFollowed) {
  for (const std::string &link : {folder + "/link", above + "/link"}) {
    ASSERT_EQ(symlink(folder.c_str(), link.c_str()), 0);
    const std::string reason = "'" + link + "' is a link";
    EXPECT_EQ(whyNotTrusted(link).substr(0, reason.size()), reason);
    EXPECT_EQ(whyNotTrusted(link + "/file").substr(0, reason.size()), reason);
  }
}

// Where a path leads, through folders of which `open` is one that others may write.
class LinkTest : public TrustTest {
protected:
  std::string open = scratch.file("open");

  void SetUp() override {
    TrustTest::SetUp();
    ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
    ASSERT_EQ(chmod(open.c_str(), 0777), 0);
  }
  static void link(const std::string &target, const std::string &place) {
    ASSERT_EQ(symlink(target.c_str(), place.c_str()), 0) << place;
  }
  static void expectFault(const std::string &path, const std::string &reason) {
    EXPECT_EQ(followLinks(path).fault.substr(0, reason.size()), reason) << path;
  }
  static void expectFile(const std::string &path, const std::string &file) {
    const FollowedPath followed = followLinks(path);
    EXPECT_EQ(followed.file, file) << path;
    EXPECT_EQ(followed.fault, "") << path;
    EXPECT_EQ(followed.error, 0) << path;
  }
};

TEST_F(LinkTest, LinksInTrustedFoldersAreFollowed) {
  link(file, scratch.file("absolute"));
  link("above/folder", scratch.file("relative"));
  link("../folder/../../relative", folder + "/upwards");
  expectFile(file, file);
  expectFile(above + "//./folder/file", file);
  expectFile(scratch.file("absolute"), file);
  expectFile(scratch.file("relative") + "/file", file);
  expectFile(folder + "/upwards/file", file);
  expectFile(folder + "/upwards/", folder);
  expectFile("/", "/");
  expectFile("/../..", "/");
}

TEST_F(LinkTest, ARelativePathBeginsInTheWorkingDirectory) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(above);
  expectFile("folder/file", file);
  expectFile("../above/folder/file", file);
  std::filesystem::current_path("/");
  expectFile(file.substr(1), file);
  std::filesystem::current_path(before);
}

// The file at the end is trusted, and others may lead the way to another one that is.
TEST_F(LinkTest, ALinkInAFolderThatOthersMayWriteIsAFault) {
  const std::string hop = open + "/hop", reason = "everyone may write folder '" + open + "' (mode ";
  link(file, hop);
  link("open/hop", scratch.file("first"));
  link(scratch.file("first"), folder + "/second");
  link(folder, open + "/folder");
  link("open/folder", scratch.file("way"));
  for (const mode_t mode : {0777, 01777}) {
    ASSERT_EQ(chmod(open.c_str(), mode), 0);
    for (const std::string &path : {hop, scratch.file("first"), folder + "/second", scratch.file("way") + "/file"})
      expectFault(path, reason);
  }
  ASSERT_EQ(chmod(open.c_str(), 0755), 0);
  expectFile(folder + "/second", file);
  expectFile(scratch.file("way") + "/file", file);
}

TEST_F(LinkTest, ALinkOfAnotherUserIsAFault) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  const std::string first = scratch.file("first");
  link(file, first);
  ASSERT_EQ(lchown(first.c_str(), 65534, 65534), 0);
  expectFault(first, "'" + first + "' belongs to another user (uid 65534");
}

TEST_F(LinkTest, TheFileIsJudgedToo) {
  link(file, scratch.file("first"));
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  expectFault(scratch.file("first"), "everyone may write '" + file + "'");
  expectFault(file, "everyone may write '" + file + "'");
}

TEST_F(LinkTest, WhereNoFileIsTheReasonIsTold) {
  link("loop", scratch.file("loop"));
  link(folder + "/none", scratch.file("nowhere"));
  const std::pair<std::string, int> cases[] = {{folder + "/none", ENOENT},
                                               {above + "/none/none", ENOENT},
                                               {scratch.file("nowhere"), ENOENT},
                                               {file + "/none", ENOTDIR},
                                               {scratch.file("loop"), ELOOP}};
  for (const auto &[path, error] : cases) {
    const FollowedPath followed = followLinks(path);
    EXPECT_EQ(followed.error, error) << path;
    EXPECT_EQ(followed.file, "") << path;
    EXPECT_EQ(followed.fault, "") << path;
  }
  // Somebody else may make it there.
  link("open/none", scratch.file("later"));
  expectFault(scratch.file("later"), "everyone may write folder '" + open + "'");
  EXPECT_EQ(followLinks(open + "/none").fault, "");
}

TEST_F(TrustTest, TheFolderAndTheFileAlone) {
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(whyFolderNotTrusted(folder), "");
  EXPECT_NE(whyFileNotTrusted(file), "");
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  EXPECT_NE(whyFolderNotTrusted(folder), "");
  EXPECT_EQ(whyFileNotTrusted(file), "");
  EXPECT_EQ(whyFolderNotTrusted("/"), "");
}

} // namespace
} // namespace nsa
