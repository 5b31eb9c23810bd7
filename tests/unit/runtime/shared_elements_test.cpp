// Which strides put two elements of a tensor into one place: held against counting the places of all elements.
#include "runtime/engine/call/shared_elements.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace nsa;

namespace {

Tensor tensorOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &strides) {
  Tensor tensor;
  tensor.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape.begin());
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  return tensor;
}

bool shares(const std::vector<int64_t> &shape, const std::vector<int64_t> &strides) {
  return sharesElements(tensorOf(shape, strides));
}

bool sharesByCounting(const Tensor &tensor) {
  std::vector<int64_t> offsets = {0};
  for (size_t axis = 0; axis < static_cast<size_t>(tensor.rank); ++axis) {
    std::vector<int64_t> more;
    for (const int64_t offset : offsets)
      for (int64_t i = 0; i < tensor.shape[axis]; ++i)
        more.push_back(offset + i * tensor.strides[axis]);
    offsets = std::move(more);
  }
  return std::set(offsets.begin(), offsets.end()).size() != offsets.size();
}

TEST(SharedElements, UsualLayoutsShareNothing) {
  EXPECT_FALSE(shares({2, 16, 4, 8}, {512, 32, 8, 1})) << "row-major";
  EXPECT_FALSE(shares({2, 16, 4, 8}, {512, 8, 128, 1})) << "[batch, heads, time, dim]";
  EXPECT_FALSE(shares({2, 16, 4, 8}, {2000, 100, 24, 1})) << "padded";
  EXPECT_FALSE(shares({1, 16, 1, 8}, {0, 8, 0, 1})) << "an axis of one element has any stride";
  EXPECT_FALSE(shares({16, 4}, {4, 5})) << "interleaved, and four steps of the one never are five of the other";
}

TEST(SharedElements, RowsThatOverlapAreFound) {
  EXPECT_TRUE(shares({2, 16, 4, 8}, {512, 8, 8, 1})) << "two axes with one stride";
  EXPECT_TRUE(shares({2, 16, 4, 8}, {512, 31, 8, 1})) << "a row that begins at the end of the one before";
  EXPECT_TRUE(shares({2, 16, 4, 8}, {511, 32, 8, 1})) << "the entries of a batch";
  EXPECT_TRUE(shares({2, 100000, 4, 128}, {51199999, 512, 128, 1})) << "long rows";
  EXPECT_TRUE(shares({16, 4}, {4, 8}));
  EXPECT_TRUE(shares({16, 4}, {4, 0}));
}

TEST(SharedElements, AgreesWithCounting) {
  std::mt19937 random(7);
  int sharing = 0, disjoint = 0;
  for (int draw = 0; draw < 20000; ++draw) {
    Tensor tensor;
    tensor.rank = static_cast<int>(random() % kMaxTensorRank) + 1;
    int64_t span = 1;
    for (size_t axis = 0; axis < static_cast<size_t>(tensor.rank); ++axis) {
      tensor.shape[axis] = static_cast<int64_t>(random() % 4) + 1;
      tensor.strides[axis] = static_cast<int64_t>(random() % static_cast<unsigned>(2 * span + 1));
      span += tensor.strides[axis] * (tensor.shape[axis] - 1);
    }
    const bool expected = sharesByCounting(tensor);
    ++(expected ? sharing : disjoint);
    ASSERT_EQ(sharesElements(tensor), expected) << [&] {
      std::string text;
      for (size_t axis = 0; axis < static_cast<size_t>(tensor.rank); ++axis)
        text += std::to_string(tensor.shape[axis]) + " of stride " + std::to_string(tensor.strides[axis]) + ", ";
      return text;
    }();
  }
  EXPECT_GT(sharing, 1000);
  EXPECT_GT(disjoint, 1000);
}

// The first solution is beyond the steps that a run has time for. Without their limit the search would take hours.
TEST(SharedElements, TheSearchEnds) {
  constexpr int64_t kMany = 100000000;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(shares({kMany, kMany, kMany}, {kMany + 7, kMany + 3, kMany + 1}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

} // namespace
