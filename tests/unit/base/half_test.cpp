// Exhaustive where the type is small: all 65536 values, and both sides of every rounding boundary.
#include "runtime/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace nsa {
namespace {

template <typename ToFloat, typename FromFloat>
void checkType(ToFloat toFloat, FromFloat fromFloat, uint16_t infinity) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    auto value = static_cast<uint16_t>(bits);
    float wide = toFloat(value);
    if ((value & 0x7fff) > infinity) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_TRUE(std::isnan(toFloat(fromFloat(wide))));
      continue;
    }
    ASSERT_EQ(fromFloat(wide), value);
    if ((value & 0x7fff) >= infinity - 1)
      continue;
    // Halfway to the next magnitude goes to the even one, one float beyond goes up, one before stays.
    auto next = static_cast<uint16_t>(value + 1);
    auto half = static_cast<float>((static_cast<double>(wide) + static_cast<double>(toFloat(next))) / 2);
    float away = value & 0x8000 ? -INFINITY : INFINITY;
    ASSERT_EQ(fromFloat(half), value & 1 ? next : value) << value;
    ASSERT_EQ(fromFloat(std::nextafter(half, away)), next) << value;
    ASSERT_EQ(fromFloat(std::nextafter(half, -away)), value) << value;
  }
}

TEST(Half, Bf16RoundsToNearestEven) { checkType(bf16ToFloat, floatToBf16, 0x7f80); }
TEST(Half, Fp16RoundsToNearestEven) { checkType(fp16ToFloat, floatToFp16, 0x7c00); }

TEST(Half, Overflow) {
  EXPECT_EQ(floatToFp16(65519.99f), 0x7bff);
  EXPECT_EQ(floatToFp16(65520.0f), 0x7c00);
  EXPECT_EQ(floatToFp16(-INFINITY), 0xfc00);
  EXPECT_EQ(floatToBf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Half, NanWithLowPayloadStaysNan) {
  float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBf16(nan))));
  EXPECT_TRUE(std::isnan(fp16ToFloat(floatToFp16(nan))));
}

} // namespace
} // namespace nsa
