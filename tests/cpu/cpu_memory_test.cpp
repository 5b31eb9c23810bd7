// What only host memory can show: reads beyond a tensor's last byte, and tensors whose elements lie more than
// 2^31 apart. Both need pages laid out by hand.
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace nsa::test {
namespace {

// Host pages that end in one that must not be touched.
class GuardedMemory {
public:
  explicit GuardedMemory(const std::vector<std::byte> &content) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t used = (content.size() + page - 1) / page * page;
    mapped = used + 2 * page;
    base = static_cast<std::byte *>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + used, page, PROT_NONE);
    begin = base + page + used - content.size();
    std::memcpy(begin, content.data(), content.size());
  }
  ~GuardedMemory() { munmap(base, mapped); }
  GuardedMemory(const GuardedMemory &) = delete;
  GuardedMemory &operator=(const GuardedMemory &) = delete;

  std::byte *data() const { return begin; }

private:
  std::byte *base = nullptr;
  std::byte *begin = nullptr;
  size_t mapped = 0;
};

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

// Address space without memory behind it; pages come with the first write.
class SparseMemory {
public:
  explicit SparseMemory(size_t bytes) : bytes(bytes) {
    void *pointer = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = pointer == MAP_FAILED ? nullptr : static_cast<std::byte *>(pointer);
  }
  ~SparseMemory() {
    if (memory)
      munmap(memory, bytes);
  }
  SparseMemory(const SparseMemory &) = delete;
  SparseMemory &operator=(const SparseMemory &) = delete;

  std::byte *data() const { return memory; }

private:
  size_t bytes;
  std::byte *memory;
};

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
