// Device tensors whose elements lie more than 2^31 apart.
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

namespace nsa::test {
namespace {

class GpuMemory : public AttentionTest {};

TEST_F(GpuMemory, StridesBeyondTwoToThe31ElementsAreAddressed) {
  if (maxTokens(1 << 20) < (1 << 20))
    GTEST_SKIP() << kTooManyTokens;
  std::mt19937_64 random(freshSeed());
  const AttentionCase shape{.name = "far",
                            .op = Operator::kDense,
                            .dtype = DType::kBf16,
                            .kvHeads = 1,
                            .group = 2,
                            .qkDim = 64,
                            .vDim = 64,
                            .sequences = {{40, 132}}};
  AttentionData data = AttentionData::draw(shape, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();

  // 2^24 elements from one key to the next: the last one begins at element 131 * 2^24 > 2^31 of k and of v.
  constexpr int64_t kTimeStride = int64_t{1} << 24;
  tools::Accelerator &device = session->accelerator();
  tools::Buffer far[2];
  const PlacedTensor *placed[2] = {&data.k, &data.v};
  for (int i = 0; i < 2; ++i) {
    Result<tools::Buffer> buffer = device.allocate(131 * kTimeStride * 2 + 64 * 2);
    ASSERT_TRUE(buffer) << buffer.status().toString();
    far[i] = std::move(*buffer);
    for (int64_t time = 0; time < 132; ++time)
      ASSERT_TRUE(device
                      .upload(static_cast<std::byte *>(far[i].data()) + time * kTimeStride * 2,
                              placed[i]->bytes().data() + time * 64 * 2, 64 * 2)
                      .isOk());
    nsa_tensor &tensor = launch->tensors[1 + i];
    tensor.data = far[i].data();
    tensor.strides[1] = kTimeStride;
    tensor.strides[0] = 132 * kTimeStride;
  }
  ASSERT_TRUE(launch->runInto(data).isOk());
  checkOutputs(data);
}

} // namespace
} // namespace nsa::test
