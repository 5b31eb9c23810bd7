// Which tensor maps a thread keeps: the maps of calls that alternate; and where there are too many, the maps that were
// used last.
#include "runtime/cuda/tensor_map_cache.h"

#include <gtest/gtest.h>
#include <vector>

namespace nsa::cuda {
namespace {

class TensorMapCacheTest : public testing::Test {
protected:
  // The first shapes that share a set, as tensors of whole megabytes.
  static std::vector<TensorMapShape> shapesOfOneSet(size_t count) {
    std::vector<TensorMapShape> shapes;
    for (uintptr_t address = 1 << 20; shapes.size() < count; address += 1 << 20) {
      TensorMapShape shape;
      shape.data = reinterpret_cast<const void *>(address);
      shape.boxRows = 64;
      shape.boxHeads = 1;
      if (TensorMapCache::setOf(shape) == 3)
        shapes.push_back(shape);
    }
    return shapes;
  }

  void use(const TensorMapShape &shape) {
    const Result<const TensorMap *> map = cache.find(shape, [&](const TensorMapShape &wanted, TensorMap &made) {
      ++encoded;
      made.opaque[0] = reinterpret_cast<uintptr_t>(wanted.data);
      return Status::ok();
    });
    ASSERT_TRUE(map) << map.status().toString();
    EXPECT_EQ((*map)->opaque[0], reinterpret_cast<uintptr_t>(shape.data));
  }

  TensorMapCache cache;
  int encoded = 0;
};

TEST_F(TensorMapCacheTest, TwoCallsInTurnsShareASet) {
  const std::vector<TensorMapShape> shapes = shapesOfOneSet(TensorMapCache::kWays);
  for (int turn = 0; turn < 10; ++turn)
    for (const TensorMapShape &shape : shapes)
      use(shape);
  EXPECT_EQ(encoded, static_cast<int>(TensorMapCache::kWays)) << "each once, whatever else is there";
}

TEST_F(TensorMapCacheTest, TheOneUsedLongestAgoGives) {
  const std::vector<TensorMapShape> shapes = shapesOfOneSet(TensorMapCache::kWays + 1);
  for (size_t i = 0; i < TensorMapCache::kWays; ++i)
    use(shapes[i]);
  use(shapes[0]);
  use(shapes.back()); // in the place of the second
  encoded = 0;
  use(shapes[0]);
  for (size_t i = 2; i < shapes.size(); ++i)
    use(shapes[i]);
  EXPECT_EQ(encoded, 0);
  use(shapes[1]);
  EXPECT_EQ(encoded, 1);
}

TEST_F(TensorMapCacheTest, ShapesOfOneAddressAreTwo) {
  TensorMapShape keys = shapesOfOneSet(1).front(), wider = keys;
  wider.rows = 77;
  ASSERT_EQ(TensorMapCache::setOf(keys), TensorMapCache::setOf(wider));
  use(keys);
  use(wider);
  use(keys);
  EXPECT_EQ(encoded, 2);
}

TEST_F(TensorMapCacheTest, AMapThatWasNotMadeIsNotKept) {
  const TensorMapShape shape = shapesOfOneSet(1).front();
  const auto fail = [](const TensorMapShape &, TensorMap &) {
    return Status::error(ErrorCode::kDeviceError, "no context");
  };
  EXPECT_EQ(cache.find(shape, fail).status().code(), ErrorCode::kDeviceError);
  use(shape);
  EXPECT_EQ(encoded, 1);
}

} // namespace
} // namespace nsa::cuda
