// What the kernel of products (kernels/wgmma_rate.cu) is asked for, and its rate.
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
  int exponents = 0;      // of a thread, to one such group
  bool overlap = true;    // exponents while the group runs, not after it
  int warpgroups = 1;     // of the only block of a multiprocessor
};

MicroSource productSource(const ProductJob &job);

struct ProductRate {
  std::vector<double> share;      // of the tensor cores' peak, in clocks of the multiprocessor; percent
  std::vector<double> exponents;  // a clock and multiprocessor
};

// `groups` are made by each warpgroup.
Result<ProductRate> productRate(MicroDevice &device, int samples, const ProductJob &job, int groups);
// The whole card by the time that passes, TFLOP/s, after it has run warm.
Result<std::vector<double>> cardRate(MicroDevice &device, int samples, const ProductJob &job);

} // namespace nsa::bench
