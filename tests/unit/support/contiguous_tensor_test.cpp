// The tensors that tools bind are row-major as the library's own are, also where an extent is 0.
#include "tools/support/operator_job.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

TEST(ContiguousTensor, HasTheStridesOfTheLibrary) {
  float data = 0;
  for (const std::vector<int64_t> &shape :
       std::vector<std::vector<int64_t>>{{3}, {1, 7, 2, 5}, {2, 3, 4, 5, 6}, {2, 0, 4, 8}, {0, 3}}) {
    const nsa_tensor tensor = contiguousTensor(&data, DType::kF32, shape);
    nsa_tensor rows;
    nsa_tensor_rows(&rows, &data, NSA_FP32, static_cast<int32_t>(shape.size()), shape.data());
    EXPECT_EQ(tensor.size, sizeof tensor);
    EXPECT_EQ(tensor.data, &data);
    EXPECT_EQ(tensor.dtype, NSA_FP32);
    ASSERT_EQ(tensor.rank, rows.rank);
    EXPECT_TRUE(std::ranges::equal(tensor.shape, rows.shape));
    EXPECT_TRUE(std::ranges::equal(tensor.strides, rows.strides)) << testing::PrintToString(shape);
  }
}

} // namespace
} // namespace nsa::tools
