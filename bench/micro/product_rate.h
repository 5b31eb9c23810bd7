// The parameters of the matrix product kernel (kernels/wgmma_rate.cu), and the clock cycles that its blocks take.
// Thread-safety: one thread.
#pragma once

#include "bench/micro/micro_group.h"

namespace nsa::bench {

// The floating point operations that a multiprocessor does in one clock in bf16. One FMA of the tensor cores counts as
// two operations (NVIDIA's H100 white paper).
inline constexpr double kPeakFlopsPerClock = 4096;

struct ProductJob {
  int columns = 128;      // N of m64nNk16
  bool registers = false; // A comes from registers
  int chains = 1;         // accumulators that are used in turns
  int steps = 8;          // instructions before each wait
  int warpgroups = 1;     // of the multiprocessor's only block
};

MicroSource productSource(const ProductJob &job);
// Returns whether the accumulators of a thread, together with its part of the operand A, need more registers than a
// thread can have when a block has three warpgroups.
bool isWide(const ProductJob &job);

// Returns, for each launch, the clock cycles of its median block. Each block writes its clock cycles to the address in
// the kernel's last parameter.
Result<std::vector<double>> blockClocks(MicroDevice &device, int samples, const MicroSource &source,
                                        const MicroLaunch &launch, int repetitions);

} // namespace nsa::bench
