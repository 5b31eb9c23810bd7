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

TEST(Axis, ALinearAxisEndsAtRoundNumbers) {
  const Axis losses = axisOver(Axis::Scale::kLinear, {5.43, 1.92});
  EXPECT_EQ(texts(losses, 6), (std::vector<std::string>{"1", "2", "3", "4", "5", "6"}));
  EXPECT_DOUBLE_EQ(losses.place(1), 0);
  EXPECT_DOUBLE_EQ(losses.place(3.5), 0.5);
  EXPECT_EQ(texts(axisOver(Axis::Scale::kLinear, {65, 650}), 9),
            (std::vector<std::string>{"0", "100", "200", "300", "400", "500", "600", "700"}));
  EXPECT_EQ(texts(axisOver(Axis::Scale::kLinear, {65, 650}), 4), (std::vector<std::string>{"0", "200", "400", "600"}));
  EXPECT_EQ(texts(axisOver(Axis::Scale::kLinear, {-0.1, 0.11}), 9),
            (std::vector<std::string>{"-0.10", "-0.05", "0.00", "0.05", "0.10", "0.15"}));
  EXPECT_EQ(texts(axisOver(Axis::Scale::kLinear, {1000, 1000.5}), 9),
            (std::vector<std::string>{"1000.0", "1000.1", "1000.2", "1000.3", "1000.4", "1000.5"}));
  Axis axis("", Axis::Scale::kLinear);
  EXPECT_FALSE(axis.include(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(axis.include(0));
}

TEST(Axis, OneValueHasRoomAround) {
  for (Axis::Scale scale : {Axis::Scale::kBinary, Axis::Scale::kDecimal, Axis::Scale::kLinear}) {
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
