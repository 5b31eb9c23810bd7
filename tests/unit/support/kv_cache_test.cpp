// Caches that are made from a history, and the check of what a call has left: the cache of a longer history is right,
// and one with any byte out of place is not.
#include "tools/support/kv_cache.h"

#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>

namespace nsa::tools {
namespace {

using T = TensorName;

constexpr int64_t kNew = 20; // emits a block or two

Spec smallSpec() {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 4;
  spec.kvHeads = 2;
  spec.qkDim = 16;
  spec.vDim = 8;
  spec.cmpBlock = 16;
  spec.cmpStride = 8;
  spec.selBlock = 16;
  spec.selCount = 4;
  return spec;
}

// The same tokens without queries: all of them are in the cache.
OperatorInputs withoutQueries(const OperatorInputs &history) {
  OperatorInputs all = history;
  all.extents.timeQ = all.maxima.tokensQ = all.maxima.seqlenQ = 0;
  for (auto &[name, tensor] : all.tensors)
    if (tensorRule(name).lead == Lead::kQueries)
      tensor = HostTensor::make(tensor.dtype, shapeOf(all.spec, name, all.extents));
  if (all.spec.layout == Layout::kPacked)
    std::ranges::fill(all.tensors.at(T::kCuSeqlensQ).bytes, std::byte{0});
  return all;
}

class KvCacheTest : public ::testing::TestWithParam<std::tuple<Layout, int32_t>> {
protected:
  KvCacheTest() {
    Spec spec = smallSpec();
    spec.layout = std::get<0>(GetParam());
    const bool packed = spec.layout == Layout::kPacked;
    const std::vector<int64_t> keys = packed ? std::vector<int64_t>{70, 25, 131} : std::vector<int64_t>{90, 90};
    const OperatorInputs history = drawInputs(spec, {std::vector<int64_t>(keys.size(), kNew), keys}, test::freshSeed());
    const uint64_t order = test::freshSeed();
    call = cacheInputs(history, std::get<1>(GetParam()), order);
    const OperatorInputs after = cacheInputs(withoutQueries(history), std::get<1>(GetParam()), order);
    for (const auto &[name, tensor] : after.tensors)
      if (isUpdated(name))
        outputs.emplace(name, tensor);
  }

  std::set<std::string> wrongTensors() const {
    std::set<std::string> names;
    for (const OutputCheck &check : checkCache(call, outputs))
      if (!check.within)
        names.insert(check.name);
    return names;
  }
  // A row's first byte.
  std::byte &at(T name, int64_t sequence, int64_t row) {
    const HostTensor *table = call.find(T::kBlockTable, T::kBlockTable);
    const int64_t offset = cacheView(call.spec, name, outputs, table).offset(sequence, row, 0, 0);
    return outputs.at(name).bytes[static_cast<size_t>(offset * dtypeBytes(call.spec.dtype))];
  }

  OperatorInputs call;
  NamedTensors outputs;
};

TEST_P(KvCacheTest, TheCacheOfTheLongerHistoryIsWithin) {
  const std::vector<OutputCheck> checks = checkCache(call, outputs);
  EXPECT_EQ(checks.size(), 9u); // four pools, two of blocks, two rings, the lengths
  for (const OutputCheck &check : checks)
    EXPECT_TRUE(check.within) << check.name << ": " << check.text;
}

TEST_P(KvCacheTest, AnyOtherByteIsNot) {
  const int64_t last = sequencesInCache(call)[1].keys - 1, first = last - kNew + 1;
  const auto expectFound = [&](T name, std::byte &byte) {
    byte ^= std::byte{1};
    EXPECT_EQ(wrongTensors(), std::set<std::string>{std::string(tensorName(name))});
    byte ^= std::byte{1};
  };
  for (const T pool : {T::kKSelCache, T::kVSelCache, T::kKWinCache, T::kVWinCache})
    for (const int64_t row : {int64_t{0}, first - 1, first, last, last + 1}) {
      SCOPED_TRACE(std::string(tensorName(pool)) + " " + std::to_string(row));
      expectFound(pool, at(pool, 1, row));
    }
  for (const T ring : {T::kKRaw, T::kVRaw}) {
    expectFound(ring, at(ring, 1, last % call.spec.cmpBlock));
    expectFound(ring, at(ring, 0, 3));
  }
  const int64_t blocks = call.spec.compressedBlocks(last + 1);
  for (const T pool : {T::kKCompCache, T::kVCompCache})
    for (const int64_t row : {blocks, blocks + 1})
      expectFound(pool, at(pool, 1, row));
  expectFound(T::kKCompCache, at(T::kKCompCache, 0, 0));
  expectFound(T::kCacheSeqlens, outputs.at(T::kCacheSeqlens).bytes[4]);
}

TEST_P(KvCacheTest, ANewBlockIsComparedWithItsTokens) {
  const int64_t last = sequencesInCache(call)[0].keys - 1, block = call.spec.compressedBlocks(last + 1) - 1;
  std::byte &exponent = *(&at(T::kVCompCache, 0, block) + 1); // of a bf16
  exponent ^= std::byte{0x40};
  EXPECT_EQ(wrongTensors(), std::set<std::string>{"v_comp_cache"});
  exponent ^= std::byte{0x40};
  // The last bit is rounding, which is within.
  at(T::kVCompCache, 0, block) ^= std::byte{1};
  EXPECT_EQ(wrongTensors(), std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    All, KvCacheTest, ::testing::Combine(::testing::Values(Layout::kDense, Layout::kPacked), ::testing::Values(0, 32)),
    [](const auto &info) {
      return std::string(layoutName(std::get<0>(info.param))) + (std::get<1>(info.param) ? "_paged" : "_contiguous");
    });

} // namespace
} // namespace nsa::tools
