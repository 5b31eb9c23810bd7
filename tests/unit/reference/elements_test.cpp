// Storing an fp64 value rounds it once.
#include "tools/reference/elements.h"

#include "runtime/base/half.h"
#include "tests/harness/seed.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace nsa::reference {
namespace {

double stored(DType dtype, double value) {
  std::byte bytes[4];
  storeElement(dtype, bytes, 0, value);
  return loadElement(dtype, bytes, 0);
}

TEST(Elements, RoundOnce) {
  // A trace above the middle of two neighbours, and too small for fp32 to see: rounding to fp32 first would land on
  // the middle, and from there on the even neighbour below.
  const double trace = 0x1p-40;
  EXPECT_EQ(stored(DType::kBf16, 1 + 0x1p-8 + trace), 1 + 0x1p-7);
  EXPECT_EQ(stored(DType::kBf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(stored(DType::kBf16, 1 + 3 * 0x1p-8 - trace), 1 + 0x1p-7);
  EXPECT_EQ(stored(DType::kBf16, 1 + 3 * 0x1p-8), 1 + 2 * 0x1p-7);
  EXPECT_EQ(stored(DType::kF16, 1 + 0x1p-11 + trace), 1 + 0x1p-10);
  EXPECT_EQ(stored(DType::kF16, -1 - 0x1p-11 - trace), -1 - 0x1p-10);
  EXPECT_EQ(stored(DType::kF16, 1 + 0x1p-11), 1);
  EXPECT_EQ(stored(DType::kF32, 1 + 0x1p-24 + trace), 1 + 0x1p-23);
  EXPECT_EQ(stored(DType::kF32, 1 + 0x1p-24), 1);
}

TEST(Elements, KeepTheEndsOfTheRange) {
  EXPECT_EQ(stored(DType::kF16, 65519.999), 65504);
  EXPECT_TRUE(std::isinf(stored(DType::kF16, 65520)));
  EXPECT_EQ(stored(DType::kF16, 0x1p-24), 0x1p-24);
  EXPECT_EQ(stored(DType::kF16, 0x1p-25), 0);
  EXPECT_EQ(stored(DType::kF16, 0x1p-25 * (1 + 0x1p-30)), 0x1p-24);
  EXPECT_TRUE(std::isinf(stored(DType::kBf16, 1e300)));
  EXPECT_TRUE(std::isinf(stored(DType::kBf16, -1e300)));
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    EXPECT_TRUE(std::isnan(stored(dtype, std::nan(""))));
    EXPECT_TRUE(std::signbit(stored(dtype, -0.0)));
    EXPECT_EQ(stored(dtype, -std::numeric_limits<double>::infinity()), -std::numeric_limits<double>::infinity());
  }
}

TEST(Elements, FindTheNearestOfAllNumbers) {
  std::mt19937_64 random(test::freshSeed());
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    for (int round = 0; round < 300; ++round) {
      const double value = std::normal_distribution<double>()(random) * std::exp2(static_cast<int>(random() % 30) - 15);
      double best = std::numeric_limits<double>::infinity();
      for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const double candidate =
            dtype == DType::kBf16 ? bf16ToFloat(static_cast<uint16_t>(bits)) : fp16ToFloat(static_cast<uint16_t>(bits));
        if (std::fabs(candidate - value) < std::fabs(best - value)) // false for NaN
          best = candidate;
      }
      ASSERT_EQ(stored(dtype, value), best) << value;
    }
  }
}

} // namespace
} // namespace nsa::reference
