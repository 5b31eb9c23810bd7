// Which files the search for NVRTC opens: a library's code runs while it is opened, so its place is judged before.
#include "compiler/cuda/Nvrtc.h"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace nsa {
namespace {

class NvrtcTrustTest : public testing::Test {
protected:
  test::Scratch scratch;
  std::string folder = scratch.file("lib"), library = folder + "/libnvrtc.so.13";

  void SetUp() override {
    ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
    std::filesystem::copy_file(NSA_OPENED_LIBRARY, library);
    ASSERT_EQ(chmod(library.c_str(), 0755), 0);
    unsetenv("NSA_TEST_LIBRARY_RAN");
  }

  // The error of opening it, or of a link to it.
  std::string fault(const std::string &path = "") const {
    return Nvrtc::open({path.empty() ? library : path, 0}).status().toString();
  }
  static bool ran() { return getenv("NSA_TEST_LIBRARY_RAN") != nullptr; }
};

// Without it the others would pass with a library that says nothing.
TEST_F(NvrtcTrustTest, ALibraryOfOursRunsWhenItIsOpened) {
  EXPECT_NE(fault().find("lacks nvrtcVersion"), std::string::npos) << fault();
  EXPECT_TRUE(ran());
}

TEST_F(NvrtcTrustTest, AFileThatOthersMayWriteIsNotOpened) {
  for (const mode_t mode : {0775, 0757}) {
    ASSERT_EQ(chmod(library.c_str(), mode), 0);
    EXPECT_NE(fault().find("may write '" + library + "'"), std::string::npos) << fault();
  }
  EXPECT_FALSE(ran());
}

TEST_F(NvrtcTrustTest, AFolderThatOthersMayWriteIsNotSearched) {
  ASSERT_EQ(symlink(library.c_str(), scratch.file("link").c_str()), 0);
  for (const mode_t mode : {0777, 01777, 0775}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_NE(fault().find("may write folder '" + folder + "'"), std::string::npos) << fault();
    EXPECT_NE(fault(scratch.file("link")).find("may write folder '" + folder + "'"), std::string::npos);
  }
  EXPECT_FALSE(ran());
}

TEST_F(NvrtcTrustTest, WhatBelongsToAnotherUserIsNotOpened) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  const std::string builtins = folder + "/libnvrtc-builtins.so.13.0";
  test::writeFile(builtins, "opened by NVRTC itself");
  for (const std::string &given : {library, builtins, folder}) {
    ASSERT_EQ(chown(given.c_str(), 65534, 65534), 0);
    EXPECT_NE(fault().find("'" + given + "' belongs to another user (uid 65534"), std::string::npos) << fault();
    ASSERT_EQ(chown(given.c_str(), 0, 0), 0);
  }
  EXPECT_FALSE(ran());
}

// A chain of links that ends at a file of ours, through a folder in which others may lead it elsewhere.
class NvrtcLinkTest : public NvrtcTrustTest {
protected:
  std::string open = scratch.file("open"), hop = open + "/hop", builtins = folder + "/libnvrtc-builtins.so.13.0";

  void SetUp() override {
    NvrtcTrustTest::SetUp();
    ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
    ASSERT_EQ(chmod(open.c_str(), 0777), 0);
  }
  void expectRefused(const std::string &path) const {
    EXPECT_NE(fault(path).find(path + " is not opened: everyone may write folder '" + open + "'"), std::string::npos)
        << fault(path);
    EXPECT_FALSE(ran());
  }
};

TEST_F(NvrtcLinkTest, ALibraryIsNotOpenedThroughAFolderThatOthersMayWrite) {
  ASSERT_EQ(symlink(library.c_str(), hop.c_str()), 0);
  ASSERT_EQ(symlink(hop.c_str(), scratch.file("link").c_str()), 0);
  expectRefused(hop);
  expectRefused(scratch.file("link"));
}

TEST_F(NvrtcLinkTest, ANeighbourThroughAFolderThatOthersMayWriteIsRefused) {
  const std::string elsewhere = scratch.file("elsewhere");
  ASSERT_EQ(symlink(hop.c_str(), builtins.c_str()), 0);
  expectRefused(library); // others may make what the link leads to
  test::writeFile(elsewhere, "opened by NVRTC itself");
  ASSERT_EQ(chmod(elsewhere.c_str(), 0644), 0);
  ASSERT_EQ(symlink(elsewhere.c_str(), hop.c_str()), 0);
  expectRefused(library);
}

TEST_F(NvrtcLinkTest, LinksInFoldersOfOursAreFollowed) {
  ASSERT_EQ(symlink("none", builtins.c_str()), 0);
  ASSERT_EQ(symlink("libnvrtc.so.13", (folder + "/libnvrtc.so").c_str()), 0);
  ASSERT_EQ(symlink("lib/libnvrtc.so", scratch.file("link").c_str()), 0);
  EXPECT_NE(fault(scratch.file("link")).find("lacks nvrtcVersion"), std::string::npos) << fault(scratch.file("link"));
  EXPECT_TRUE(ran());
}

TEST_F(NvrtcTrustTest, AMissingFileIsNamed) {
  EXPECT_NE(fault(folder + "/none.so").find(folder + "/none.so: No such file"), std::string::npos)
      << fault(folder + "/none.so");
}

TEST_F(NvrtcTrustTest, PlacesOfTheSystemComeFirst) {
  const std::vector<std::string> paths = Nvrtc::candidates({"", 12040});
  ASSERT_GE(paths.size(), 2u);
  EXPECT_EQ(paths[0], "libnvrtc.so.12") << "the dynamic linker's own search";
  EXPECT_EQ(paths[1], "/usr/local/cuda/lib64/libnvrtc.so.12");
  EXPECT_TRUE(std::ranges::is_sorted(paths, {}, [](const std::string &path) { return path.starts_with("/opt/"); }));
}

} // namespace
} // namespace nsa
