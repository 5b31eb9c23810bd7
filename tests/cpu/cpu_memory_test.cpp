// What only host memory can show: reads beyond a tensor's last byte, and tensors whose elements lie more than
// 2^31 apart. Both need pages laid out by hand.
#include "tests/cpu/host_memory.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <cstring>

namespace nsa::test {
namespace {

class CpuMemory : public AttentionTest {};

TEST_F(CpuMemory, NothingBehindTheLastElementIsTouched) {
  std::mt19937_64 random(freshSeed());
  for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    for (int32_t dim : {1, 5, 33, 64, 72}) {
      const AttentionCase shape{.name = "guard",
                                .op = Operator::kWindow,
                                .dtype = dtype,
                                .kvHeads = 2,
                                .group = 3,
                                .qkDim = dim,
                                .vDim = dim,
                                .window = 20,
                                .sequences = {{37, 51}}};
      AttentionData data = AttentionData::draw(shape, random);
      Result<Launch> launch = session->prepare(data);
      ASSERT_TRUE(launch) << launch.status().toString();
      const GuardedMemory q(data.q.bytes()), k(data.k.bytes()), v(data.v.bytes()), out(data.out.bytes()),
          lse(data.lse.bytes());
      const GuardedMemory *guarded[] = {&q, &k, &v, &out, &lse};
      for (size_t i = 0; i < 5; ++i)
        launch->tensors[i].data = guarded[i]->data();
      const Status status = launch->enqueue();
      ASSERT_TRUE(status.isOk()) << status.toString();
      std::memcpy(data.out.bytes().data(), out.data(), data.out.bytes().size());
      std::memcpy(data.lse.bytes().data(), lse.data(), data.lse.bytes().size());
      const reference::Attention problem = data.problem();
      const reference::ErrorReport error =
          reference::compare(problem, reference::attend(problem), data.out.view(), data.lse.view());
      EXPECT_TRUE(error.within(reference::toleranceOf(dtype)))
          << shape.text() << ": " << error.toString(reference::toleranceOf(dtype));
    }
  }
}

TEST_F(CpuMemory, StridesBeyondTwoToThe31ElementsAreAddressed) {
  std::mt19937_64 random(freshSeed());
  const AttentionCase shape{.name = "far",
                            .op = Operator::kDense,
                            .dtype = DType::kBf16,
                            .kvHeads = 1,
                            .group = 2,
                            .qkDim = 32,
                            .vDim = 32,
                            .sequences = {{150, 150}}};
  AttentionData data = AttentionData::draw(shape, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();

  // q, k, v and out with 2^24 elements from one time to the next: the last row begins at element 149 * 2^24 > 2^31.
  constexpr int64_t kTimeStride = int64_t{1} << 24;
  const SparseMemory memory[4] = {SparseMemory(150 * kTimeStride * 2), SparseMemory(150 * kTimeStride * 2),
                                  SparseMemory(150 * kTimeStride * 2), SparseMemory(150 * kTimeStride * 2)};
  PlacedTensor *placed[4] = {&data.q, &data.k, &data.v, &data.out};
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(memory[i].data()) << "no address space";
    const nsa_tensor near = launch->tensors[i];
    const size_t rowBytes = static_cast<size_t>(near.shape[2] * near.shape[3] * 2);
    for (int64_t time = 0; time < 150; ++time)
      std::memcpy(memory[i].data() + time * kTimeStride * 2, placed[i]->bytes().data() + time * near.strides[1] * 2,
                  rowBytes);
    launch->tensors[i].data = memory[i].data();
    launch->tensors[i].strides[1] = kTimeStride;
    launch->tensors[i].strides[0] = 150 * kTimeStride;
  }
  const Status status = launch->enqueue();
  ASSERT_TRUE(status.isOk()) << status.toString();
  ASSERT_TRUE(launch->download(data).isOk()); // the LSE, which stayed where it was
  for (int64_t time = 0; time < 150; ++time)
    std::memcpy(data.out.bytes().data() + time * 64 * 2, memory[3].data() + time * kTimeStride * 2, size_t{64} * 2);
  checkOutputs(data);
}

} // namespace
} // namespace nsa::test
