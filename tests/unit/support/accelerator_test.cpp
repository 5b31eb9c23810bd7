// The guards around every buffer: a write next to it is told, whichever side it is on.
#include "tools/support/accelerator.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

TEST(Accelerator, TellsWhatWasWrittenAroundABuffer) {
  if (kGuardBytes == 0)
    GTEST_SKIP() << "the address sanitizer has guards of its own, and ends the program";
  Result<std::unique_ptr<Accelerator>> opened = Accelerator::open("cpu");
  ASSERT_TRUE(opened.isOk());
  Accelerator &device = **opened;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{256}, size_t{1000}}) {
    const auto end = static_cast<int64_t>(size), guard = static_cast<int64_t>(kGuardBytes);
    for (const int64_t written : {-guard, int64_t{-1}, end, end + guard - 1}) {
      Result<Buffer> buffer = device.allocate(size);
      ASSERT_TRUE(buffer.isOk());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0u);
      ASSERT_TRUE(device.fill(buffer->data(), 0, size).isOk());
      EXPECT_TRUE(device.checkGuards(*buffer, "k").isOk());
      static_cast<unsigned char *>(buffer->data())[written] = 0;
      const Status status = device.checkGuards(*buffer, "k");
      ASSERT_EQ(status.code(), ErrorCode::kInternal) << written;
      EXPECT_NE(
          status.toString().find(written < 0 ? "1 of the 4096 bytes in front of k" : "1 of the 4096 bytes behind k"),
          std::string::npos)
          << status.toString();
    }
  }
  EXPECT_TRUE(device.checkGuards(Buffer(), "nothing").isOk());
}

} // namespace
} // namespace nsa::tools
