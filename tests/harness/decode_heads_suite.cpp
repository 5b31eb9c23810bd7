// Heads of a group in decode (docs/specification.md 13), which are the rows or columns of its kernels' tiles: against
// the reference of the forward over the same history. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>

namespace nsa::test {
namespace {

// Heads of a group are the rows of tiles: parts of one, a whole one, one more, and several. In a long cache every
// branch has as many programs as it may, and `merge` as many slots.
struct HeadsShape {
  const char *name;
  int32_t group, kvHeads;
  DType dtype;
  int32_t qkDim = 32, vDim = 16;
  int64_t batch = 2, tokens = 150, mostNew = 1;
  int32_t pageSize = 0;
  bool isLong = false;
};
Spec specOf(const HeadsShape &shape) {
  Spec spec = smallSpec(shape.dtype);
  spec.kvHeads = shape.kvHeads;
  spec.queryHeads = shape.kvHeads * shape.group;
  spec.qkDim = shape.qkDim;
  spec.vDim = shape.vDim;
  if (shape.isLong) {
    spec.cmpBlock = 4;
    spec.cmpStride = 2;
    spec.selBlock = 64;
    spec.selCount = 16;
    spec.window = 1000;
  }
  return spec;
}

Spec decodeSpec(const HeadsShape &shape) {
  Spec spec = specOf(shape);
  spec.op = Operator::kDecode;
  spec.pageSize = shape.pageSize;
  return spec;
}

const std::vector<HeadsShape> &headsShapes() {
  static const std::vector<HeadsShape> shapes = servedCases<HeadsShape>(
      {
          {.name = "1", .group = 1, .kvHeads = 2, .dtype = DType::kF16},
          {.name = "3", .group = 3, .kvHeads = 2, .dtype = DType::kBf16, .mostNew = 2, .pageSize = 32},
          {.name = "16", .group = 16, .kvHeads = 2, .dtype = DType::kF32, .mostNew = 3},
          {.name = "17", .group = 17, .kvHeads = 2, .dtype = DType::kF32, .pageSize = 48},
          {.name = "17_of_many_queries", .group = 17, .kvHeads = 2, .dtype = DType::kBf16, .batch = 8, .mostNew = 8},
          {.name = "128", .group = 128, .kvHeads = 1, .dtype = DType::kF16, .mostNew = 2, .pageSize = 16},
          // More than one program of a GPU has registers for.
          {.name = "128_of_192_and_128",
           .group = 128,
           .kvHeads = 1,
           .dtype = DType::kBf16,
           .qkDim = 192,
           .vDim = 128,
           .batch = 1,
           .mostNew = 4},
          {.name = "16_of_192_and_128",
           .group = 16,
           .kvHeads = 4,
           .dtype = DType::kBf16,
           .qkDim = 192,
           .vDim = 128,
           .batch = 1,
           .tokens = 300,
           .mostNew = 4,
           .pageSize = 32},
          {.name = "64_of_64",
           .group = 64,
           .kvHeads = 1,
           .dtype = DType::kBf16,
           .qkDim = 64,
           .vDim = 64,
           .batch = 1,
           .pageSize = 32},
          {.name = "8_of_256",
           .group = 8,
           .kvHeads = 2,
           .dtype = DType::kF16,
           .qkDim = 256,
           .vDim = 256,
           .batch = 1,
           .mostNew = 2,
           .pageSize = 16},
          {.name = "17_of_a_long_cache",
           .group = 17,
           .kvHeads = 1,
           .dtype = DType::kBf16,
           .batch = 1,
           .tokens = 1300,
           .mostNew = 8,
           .pageSize = 64,
           .isLong = true},
      },
      decodeSpec);
  return shapes;
}

class DecodeHeads : public DecodeTest, public ::testing::WithParamInterface<HeadsShape> {
protected:
  static void SetUpTestSuite() {
    makeReadyForSuite(headsShapes(),
                      [](const HeadsShape &shape) { return std::pair(decodeSpec(shape), maxima(shape)); });
  }
  static CacheShape cacheOf(const HeadsShape &shape) {
    const int64_t page = std::max(shape.pageSize, 16);
    const int64_t least = shape.isLong ? 2049 : shape.tokens; // what is planned for, more than what comes
    return {.room = (least + page - 1) / page * page, .mostNew = shape.mostNew, .pageSize = shape.pageSize, .seed = 11};
  }
  static Maxima maxima(const HeadsShape &shape) {
    const int64_t most = servedNew(decodeSpec(shape), shape.mostNew);
    return {shape.batch, shape.batch * most, most, cacheOf(shape).room};
  }
};
INSTANTIATE_TEST_SUITE_P(Heads, DecodeHeads, ::testing::ValuesIn(headsShapes()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(DecodeHeads, OfAGroupAreTheForward) {
  const HeadsShape &shape = GetParam();
  ASSERT_TRUE(sharesKeys(decodeSpec(shape), maxima(shape)));
  if (shape.isLong) {
    const KeySplits splits = KeySplits::make(decodeSpec(shape), maxima(shape));
    for (const int64_t programs : splits.counts)
      ASSERT_EQ(programs, KeySplits::kMost);
    ASSERT_EQ(splits.slots(decodeSpec(shape)), 48);
  }
  const std::vector<int64_t> lengths(static_cast<size_t>(shape.batch), shape.tokens);
  const OperatorInputs history = tools::drawInputs(specOf(shape), {lengths, lengths}, freshSeed());
  decode(history, cacheOf(shape), evenly(shape.tokens, shape.mostNew));
}

} // namespace
} // namespace nsa::test
