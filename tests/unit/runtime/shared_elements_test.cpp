// Which strides put two elements of a tensor into one place, and which tensors lie apart: held against counting the
// places of all elements.
#include "runtime/engine/call/shared_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
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

Tensor at(Tensor tensor, int64_t element) {
  constexpr uintptr_t kBase = 1 << 20;
  tensor.data = reinterpret_cast<void *>(kBase + static_cast<uintptr_t>(element * dtypeBytes(tensor.dtype)));
  return tensor;
}

TEST(TensorsApart, SlicesOfOneArray) {
  const auto slice = [](int64_t first, int64_t heads) { return at(tensorOf({100, heads, 8}, {48, 8, 1}), first); };
  EXPECT_TRUE(liesApart(slice(0, 2), slice(16, 2))) << "[tokens, q and k and v, dim]";
  EXPECT_TRUE(liesApart(slice(32, 2), slice(0, 2)));
  EXPECT_FALSE(liesApart(slice(0, 3), slice(16, 2))) << "heads in common";
  EXPECT_FALSE(liesApart(slice(0, 2), slice(0, 2)));
  EXPECT_FALSE(liesApart(slice(40, 2), slice(0, 1))) << "a slice that reaches over the end of a token";
  const Tensor rows = tensorOf({100, 2, 8}, {16, 8, 1});
  EXPECT_TRUE(liesApart(at(rows, 0), at(rows, 1600))) << "one behind the other";
  EXPECT_FALSE(liesApart(at(rows, 0), at(rows, 1599)));
  EXPECT_TRUE(liesApart(at(tensorOf({7, 8}, {24, 1}), 0), at(tensorOf({100, 8}, {24, 1}), 8))) << "of other lengths";
  EXPECT_TRUE(liesApart(at(tensorOf({2, 50, 8}, {2400, 24, 1}), 0), at(tensorOf({2, 50, 8}, {2400, 24, 1}), 8)));
  EXPECT_FALSE(liesApart(at(tensorOf({8}, {2}), 0), at(tensorOf({8}, {3}), 1))) << "not known";
}

TEST(TensorsApart, NeverSaysSoOfTensorsThatShareMemory) {
  std::mt19937 random(11);
  int apart = 0, sharing = 0;
  for (int draw = 0; draw < 20000; ++draw) {
    const auto drawn = [&] {
      Tensor tensor;
      tensor.rank = 3;
      constexpr int64_t kStrides[] = {1, 2, 4, 8, 12, 24};
      for (size_t axis = 0; axis < 3; ++axis) {
        tensor.shape[axis] = static_cast<int64_t>(random() % 4) + 1;
        tensor.strides[axis] = kStrides[random() % std::size(kStrides)];
      }
      return at(tensor, static_cast<int64_t>(random() % 40));
    };
    const auto places = [](const Tensor &tensor) {
      std::set<uintptr_t> all;
      for (int64_t x = 0; x < tensor.shape[0]; ++x)
        for (int64_t y = 0; y < tensor.shape[1]; ++y)
          for (int64_t z = 0; z < tensor.shape[2]; ++z)
            all.insert(
                reinterpret_cast<uintptr_t>(tensor.data) +
                2 * static_cast<uintptr_t>(x * tensor.strides[0] + y * tensor.strides[1] + z * tensor.strides[2]));
      return all;
    };
    const Tensor a = drawn(), b = drawn();
    const std::set<uintptr_t> first = places(a), second = places(b);
    const bool shares = std::ranges::any_of(first, [&](uintptr_t place) { return second.contains(place); });
    ++(shares ? sharing : apart);
    ASSERT_FALSE(shares && liesApart(a, b)) << draw;
    ASSERT_EQ(liesApart(a, b), liesApart(b, a));
  }
  EXPECT_GT(sharing, 1000);
  EXPECT_GT(apart, 1000);
}

} // namespace
