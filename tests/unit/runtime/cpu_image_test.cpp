// Mapping code: entry within the image, executable and never writable at once.
#include "runtime/cpu/cpu_image.h"

#include "tests/unit/runtime/stored_kernel.h"

#include <fstream>
#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::cpu;

namespace {

TEST(CpuImage, RunsFromAnOffset) {
  std::vector<std::byte> image(64, std::byte{0xcc}); // int3 everywhere but at the entry
  std::vector<std::byte> code = test::countingCode();
  std::copy(code.begin(), code.end(), image.begin() + 16);
  Result<std::unique_ptr<CpuImage>> mapped = CpuImage::map(image, 16);
  ASSERT_TRUE(mapped.isOk()) << mapped.status().toString();
  uint64_t counter = 41;
  uint64_t slots[] = {reinterpret_cast<uint64_t>(&counter)};
  const int32_t id[3] = {};
  (*mapped)->entry()(slots, id, nullptr);
  EXPECT_EQ(counter, 42u);
}

TEST(CpuImage, EntryBeyondTheImageIsRefused) {
  std::vector<std::byte> image(8, std::byte{0xc3});
  for (uint64_t offset : {uint64_t{8}, uint64_t{1} << 40}) {
    Result<std::unique_ptr<CpuImage>> mapped = CpuImage::map(image, offset);
    ASSERT_FALSE(mapped.isOk());
    EXPECT_EQ(mapped.status().error().field, "entry");
  }
  EXPECT_FALSE(CpuImage::map({}, 0).isOk());
}

TEST(CpuImage, PagesAreExecutableAndNotWritable) {
  std::vector<std::byte> image = test::countingCode();
  Result<std::unique_ptr<CpuImage>> mapped = CpuImage::map(image, 0);
  ASSERT_TRUE(mapped.isOk());
  auto address = reinterpret_cast<uintptr_t>((*mapped)->entry());
  std::ifstream maps("/proc/self/maps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char rights[5] = "";
    // NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion): the kernel writes the line
    ASSERT_EQ(sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights), 3);
    if (address < begin || address >= end)
      continue;
    found = true;
    EXPECT_EQ(std::string(rights).substr(0, 3), "r-x");
  }
  EXPECT_TRUE(found);
}

} // namespace
