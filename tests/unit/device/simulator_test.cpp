// The simulator sees what it is there to see: each fault planted here is an error.
#include "copy.cuh"
#include "ptx_matrix.cuh"
#include "ptx_warp.cuh"

#include <gtest/gtest.h>
#include <stdexcept>

using namespace nsa;

namespace {

void run(const std::function<void()> &body) { simulator::runBlock(64, {}, simulator::Order::kForward, body); }

TEST(Simulator, ABarrierThatSomeThreadsSkip) {
  EXPECT_THROW(run([] {
                 if (threadIdx.x != 5)
                   __syncthreads();
               }),
               std::runtime_error);
}

TEST(Simulator, LanesThatMeetAtDifferentOperations) {
  EXPECT_THROW(run([] {
                 uint32 matrices[4];
                 if (threadIdx.x % 2)
                   ldmatrix_x4(matrices, 0);
                 else
                   shuffle(1, 0);
               }),
               std::runtime_error);
}

TEST(Simulator, ACopyThatIsReadBeforeItIsWaitedFor) {
  alignas(16) float source[4] = {1, 2, 3, 4};
  float early = 0, late = 0;
  run([&] {
    if (threadIdx.x != 0)
      return;
    cp_async_16(0, source, 8);
    commit_copies();
    early = reinterpret_cast<float *>(shared_memory)[1];
    wait_copies<0>();
    late = reinterpret_cast<float *>(shared_memory)[1] + reinterpret_cast<float *>(shared_memory)[2];
  });
  EXPECT_TRUE(std::isnan(early));
  EXPECT_EQ(late, 2); // the third element lies past the 8 bytes, and is zero
}

TEST(Simulator, AnUnalignedCopy) {
  alignas(16) float source[8] = {};
  EXPECT_THROW(run([&] { cp_async_16(0, source + 1, 16); }), std::runtime_error);
  EXPECT_THROW(run([&] { cp_async_16(8, source, 16); }), std::runtime_error);
}

} // namespace
