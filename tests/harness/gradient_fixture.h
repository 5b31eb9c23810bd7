// What tests of single kernels of gradients share: a device without an engine, and a comparison with the reference.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/gradient_problem.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tools/reference/gradient/attention_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr int64_t kKvHeads = 2;

inline std::vector<float> floats(const std::vector<double> &values) { return {values.begin(), values.end()}; }

// The error relative to the size of what is wanted. What is wanted as NaN has to be NaN. If all else is wanted as 0, it
// has to be exactly 0.
inline void expectClose(const std::vector<double> &got, const std::vector<double> &wanted, DType dtype,
                        const char *name) {
  ASSERT_EQ(got.size(), wanted.size()) << name;
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::isnan(got[i]), std::isnan(wanted[i])) << name << " " << i << ": " << got[i] << " for " << wanted[i];
    if (std::isnan(wanted[i]))
      continue;
    error += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    size += wanted[i] * wanted[i];
  }
  if (size == 0)
    EXPECT_TRUE(std::ranges::all_of(got, [](double value) { return std::isnan(value) || reference::isZero(value); }))
        << name;
  else
    EXPECT_LE(std::sqrt(error / size), reference::toleranceOf(dtype).relativeRms) << name;
}

class GradientTest : public testing::Test {
protected:
  void SetUp() override {
    if (const std::string &reason = Session::get().skipReason(); !reason.empty())
      GTEST_SKIP() << reason;
    Result<std::unique_ptr<Device>> opened = openTestDevice();
    ASSERT_TRUE(opened) << opened.status().toString();
    device = std::move(*opened);
  }

  static Spec specOf(Operator op, DType dtype, int32_t group, int32_t qkDim, int32_t vDim) {
    Spec spec;
    spec.op = op;
    spec.dtype = dtype;
    spec.kvHeads = kKvHeads;
    spec.queryHeads = kKvHeads * group;
    spec.qkDim = qkDim;
    spec.vDim = vDim;
    return spec;
  }

  // An array that no program has written to is NaN.
  DeviceArray untouched(std::vector<int64_t> shape, DType dtype = DType::kF32) {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    const auto elementBytes = static_cast<size_t>(dtypeBytes(dtype));
    const std::vector<std::byte> nan(static_cast<size_t>(count) * elementBytes, std::byte{0xff}); // of every type
    return DeviceArray(*device, nan.data(), nan.size(), elementBytes, std::move(shape));
  }

  std::unique_ptr<Device> device;
};

} // namespace nsa::test
