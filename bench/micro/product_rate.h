// What the kernel of products (kernels/wgmma_rate.cu) is asked for, and the clocks of a block.
// Thread-safety: one thread.
#pragma once

#include "bench/micro/micro_group.h"

namespace nsa::bench {

// One FMA of the tensor cores counts two: what a multiprocessor does in a clock, in bf16 (NVIDIA's H100 white paper).
inline constexpr double kPeakFlopsPerClock = 4096;

struct ProductJob {
  int columns = 128;      // N of m64nNk16
  bool registers = false; // A from registers
  int chains = 1;         // accumulators in turns
  int steps = 8;          // instructions that are waited for together
  int warpgroups = 1;     // of the only block of a multiprocessor
};

MicroSource productSource(const ProductJob &job);
// Accumulators and A of a thread need more registers than three warpgroups leave it.
bool isWide(const ProductJob &job);

// Clocks that the median block of a launch takes: blocks write theirs through the last parameter. A sample each.
Result<std::vector<double>> blockClocks(MicroDevice &device, int samples, const MicroSource &source,
                                        const MicroLaunch &launch, int repetitions);

} // namespace nsa::bench
