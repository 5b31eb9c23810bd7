// The parameters of the kernel of products (kernels/wgmma_rate.cu), and the clocks that its blocks take.
// Thread-safety: one thread.
#pragma once

#include "bench/micro/micro_group.h"

namespace nsa::bench {

// The floating point operations that a multiprocessor does in one clock in bf16. One FMA of the tensor cores counts two
// (NVIDIA's H100 white paper).
inline constexpr double kPeakFlopsPerClock = 4096;

struct ProductJob {
  int columns = 128;      // N of m64nNk16
  bool registers = false; // A comes from registers
  int chains = 1;         // accumulators that are used in turns
  int steps = 8;          // instructions before each wait
  int warpgroups = 1;     // of the multiprocessor's only block
};

MicroSource productSource(const ProductJob &job);
// Returns whether a thread's accumulators and its part of the operand A need more registers than each thread of three
// warpgroups can have.
bool isWide(const ProductJob &job);

// The clocks of the median block of a launch, for each sample. Blocks write their clocks to the address in the kernel's
// last parameter.
Result<std::vector<double>> blockClocks(MicroDevice &device, int samples, const MicroSource &source,
                                        const MicroLaunch &launch, int repetitions);

} // namespace nsa::bench
