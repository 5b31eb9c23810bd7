// The C++ wrapper: what a Tensor is made from, and objects that are empty.
#include "runtime/include/nsa/nsa.hpp"

#include <array>
#include <gtest/gtest.h>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void expectMatrix(const nsa::Tensor &tensor, const void *data, nsa_dtype dtype) {
  const nsa_tensor &c = tensor.c();
  EXPECT_EQ(c.data, data);
  EXPECT_EQ(c.dtype, dtype);
  ASSERT_EQ(c.rank, 2);
  EXPECT_EQ(c.shape[0], 3);
  EXPECT_EQ(c.shape[1], 4);
  EXPECT_EQ(c.strides[0], 4);
  EXPECT_EQ(c.strides[1], 1);
}

TEST(Wrapper, ATensorIsMadeFromPointersAndContainers) {
  std::vector<float> floats(12);
  std::array<std::int32_t, 12> integers{};
  expectMatrix(nsa::Tensor(floats, {3, 4}), floats.data(), NSA_FP32);
  expectMatrix(nsa::Tensor(integers, {3, 4}), integers.data(), NSA_INT32);
  expectMatrix(nsa::Tensor(std::span<const float>(floats), {3, 4}), floats.data(), NSA_FP32);
  expectMatrix(nsa::Tensor(floats.data(), {3, 4}), floats.data(), NSA_FP32);
  expectMatrix(nsa::Tensor(floats.data(), NSA_BF16, {3, 4}), floats.data(), NSA_BF16);
}

TEST(Wrapper, ATensorMayBeAddedTo) {
  float data[12] = {};
  const nsa::Tensor tensor(data, NSA_FP32, {3, 4});
  EXPECT_EQ(tensor.c().accumulate, 0);
  EXPECT_EQ(tensor.accumulated().c().accumulate, 1);
  expectMatrix(tensor.accumulated(), data, NSA_FP32);
}

TEST(Wrapper, TheRankMayBeKnownAtRunTime) {
  const float data[24] = {};
  for (std::size_t rank = 1; rank <= nsa::Extents::kMost; ++rank) {
    const std::vector<std::int64_t> shape(rank, 2), strides(rank, 7);
    const nsa::Tensor tensor(data, NSA_FP32, shape, strides);
    ASSERT_EQ(tensor.c().rank, static_cast<std::int32_t>(rank));
    for (std::size_t axis = 0; axis < rank; ++axis) {
      EXPECT_EQ(tensor.c().shape[axis], 2);
      EXPECT_EQ(tensor.c().strides[axis], 7);
    }
    expectMatrix(nsa::Tensor(data, nsa::Extents(std::array<std::int64_t, 2>{3, 4})), data, NSA_FP32);
  }
}

TEST(Wrapper, AShapeThatBreaksARuleThrows) {
  const std::vector<float> floats(11);
  const auto messageOf = [](const auto &make) -> std::string {
    try {
      make();
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(messageOf([&] { nsa::Tensor(floats, {3, 4}); }),
            "nsa::Tensor: the container has 11 elements: the shape needs 12");
  const std::string rule = ": a tensor has 1 to 5, and as many strides or none";
  EXPECT_EQ(messageOf([&] { nsa::Tensor(floats.data(), nsa::Extents()); }),
            "nsa::Tensor: shape has 0 dimensions and strides has 0" + rule);
  EXPECT_EQ(messageOf([&] { nsa::Tensor(floats.data(), std::vector<std::int64_t>(6, 1)); }),
            "nsa::Tensor: shape has 6 dimensions and strides has 0" + rule);
  EXPECT_EQ(messageOf([&] { nsa::Tensor(floats.data(), {3, 3}, {3}); }),
            "nsa::Tensor: shape has 2 dimensions and strides has 1" + rule);
}

TEST(Wrapper, BindingsMayBeReplacedAndErased) {
  std::vector<float> values(8);
  const nsa::Tensor first(values, {2, 4}), second(values, {4, 2});
  std::vector<nsa::Binding> bindings = {{NSA_Q, first}, {NSA_K, first}};
  bindings[1] = {NSA_V, second};
  bindings.erase(bindings.begin());
  ASSERT_EQ(bindings.size(), 1u);
  EXPECT_EQ(bindings[0].c().name, NSA_V);
  EXPECT_EQ(bindings[0].c().tensor, &second.c());
}

TEST(Wrapper, EmptyObjectsRefuseToWork) {
  const nsa::Plan plan;
  EXPECT_EQ(plan.handle(), nullptr);
  EXPECT_EQ(plan.describe(), "");
  EXPECT_THROW(plan.workspaceSize(), nsa::Error);
  EXPECT_THROW(plan.run({{NSA_Q, nsa::Tensor()}}, nullptr, 0), nsa::Error);
  const nsa::HostWorkspace workspace;
  EXPECT_EQ(workspace.data(), nullptr);
  EXPECT_EQ(workspace.size(), 0u);
}

} // namespace
