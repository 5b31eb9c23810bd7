// Where values stand on an axis, and which of them get a line.
#include "tools/report/axis.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace nsa::report {
namespace {

Axis axisOver(Axis::Scale scale, std::initializer_list<double> values) {
  Axis axis("", scale);
  for (double value : values)
    EXPECT_TRUE(axis.include(value)) << value;
  axis.finish();
  return axis;
}

std::vector<std::string> texts(const Axis &axis, size_t most) {
  std::vector<std::string> list;
  for (const Axis::Tick &tick : axis.ticks(most))
    list.push_back(tick.text);
  return list;
}

TEST(Axis, PowersOfTwoAreNamedAsLengthsAre) {
  const Axis axis = axisOver(Axis::Scale::kBinary, {512, 65536});
  EXPECT_EQ(texts(axis, 9), (std::vector<std::string>{"512", "1K", "2K", "4K", "8K", "16K", "32K", "64K"}));
  EXPECT_EQ(texts(axis, 4), (std::vector<std::string>{"512", "2K", "8K", "32K"}));
  EXPECT_DOUBLE_EQ(axis.place(512), 0);
  EXPECT_DOUBLE_EQ(axis.place(65536), 1);
  EXPECT_NEAR(axis.place(4096), 3.0 / 7, 1e-12);
  EXPECT_EQ(texts(axisOver(Axis::Scale::kBinary, {524288, 2097152}), 9),
            (std::vector<std::string>{"512K", "1M", "2M"}));
}

TEST(Axis, DecadesEndAtWholeOnes) {
  const Axis axis = axisOver(Axis::Scale::kDecimal, {0.03, 45});
  EXPECT_EQ(texts(axis, 6), (std::vector<std::string>{"0.01", "0.1", "1", "10", "100"}));
  EXPECT_GT(axis.place(0.03), 0);
  EXPECT_LT(axis.place(45), 1);
}

TEST(Axis, OneValueHasRoomAround) {
  for (Axis::Scale scale : {Axis::Scale::kBinary, Axis::Scale::kDecimal}) {
    const Axis axis = axisOver(scale, {8});
    EXPECT_TRUE(std::isfinite(axis.place(8)));
    EXPECT_GE(axis.ticks(6).size(), 2u);
  }
}

TEST(Axis, RefusesWhatItCannotShow) {
  const double none = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  Axis axis("", Axis::Scale::kDecimal);
  for (double value : {0.0, -1.0, none, infinite})
    EXPECT_FALSE(axis.include(value)) << value;
  EXPECT_TRUE(axis.isEmpty());
  axis.finish();
  EXPECT_TRUE(std::isfinite(axis.place(1))) << "an empty axis can still be drawn";
}

} // namespace
} // namespace nsa::report
