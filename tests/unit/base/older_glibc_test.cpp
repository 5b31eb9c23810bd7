// The definitions that what is installed has inside in place of those of a newer glibc. They are linked into this test
// too, so they are what it calls.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <malloc.h>
#include <pthread.h>
#include <set>

extern "C" uint32_t arc4random();

namespace nsa {
namespace {

TEST(OlderGlibc, DrawsDifferentNumbers) {
  std::set<uint32_t> drawn;
  for (int i = 0; i < 64; ++i)
    drawn.insert(arc4random());
  EXPECT_GE(drawn.size(), 63u); // two of 64 are equal once in two million times
}

#if __GLIBC_PREREQ(2, 33)
TEST(OlderGlibc, CountsAllocatedBytes) {
  void *block = std::malloc(5000);
  const struct mallinfo2 wide = mallinfo2();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  std::free(block);
  EXPECT_EQ(wide.arena, static_cast<unsigned>(narrow.arena));
  EXPECT_EQ(wide.uordblks, static_cast<unsigned>(narrow.uordblks));
  EXPECT_EQ(wide.fordblks, static_cast<unsigned>(narrow.fordblks));
}
#endif

} // namespace
} // namespace nsa
