// Where a library that was loaded through a link looks for what lies beside it.
#include "runtime/engine/compile/library_place.h"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>

namespace nsa {
namespace {

TEST(LibraryPlace, TheFolderOfALinkCountsWhereOthersMayNotWrite) {
  const test::Scratch folder;
  const std::string library = folder.write("real/library.so", test::readFile(NSA_FAKE_PROFILER));
  const std::string link = folder.file("way/library.so");
  const std::string besideLink = folder.write("way/beside", ""), besideFile = folder.write("real/beside", "");
  std::filesystem::create_symlink(library, link);
  void *handle = dlopen(link.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(handle) << dlerror();
  const void *address = dlsym(handle, "fake_profiler_names");
  ASSERT_TRUE(address);
  const auto found = [&] { return LibraryPlace::of(address).find("beside"); };
  for (const mode_t mode : {0777, 01777, 0775}) {
    ASSERT_EQ(chmod(folder.file("way").c_str(), mode), 0);
    EXPECT_EQ(found(), besideFile) << std::oct << mode;
  }
  ASSERT_EQ(chmod(folder.file("way").c_str(), 0755), 0);
  EXPECT_EQ(found(), besideLink);
  // The file's own folder holds the code that runs already.
  std::filesystem::remove(besideLink);
  ASSERT_EQ(chmod(folder.file("real").c_str(), 0777), 0);
  EXPECT_EQ(found(), besideFile);
  dlclose(handle);
}

} // namespace
} // namespace nsa
