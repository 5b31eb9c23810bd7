// Measures the processor's peak of fused multiply-adds in fp32 in the same run as the kernels. The speed of a
// kernel on the CPU can then be given as a fraction of the processor's peak at its present clock rate.
// Thread-safety: one call at a time; the measurement starts its own threads.
#pragma once

namespace nsa::bench {

struct FmaPeak {
  int vectorBits = 0; // 512 or 256; 0: the processor has neither AVX-512 nor FMA
  int threads = 0;
  double gflops = 0; // of all threads together; a fused multiply-add counts as two operations
};

// Returns the best rate of `repeats` runs of about 20 ms each. The best rate is nearest to
// the rate that the processor reaches without the load of other processes.
FmaPeak measureFmaPeak(int threads, int repeats = 5);

} // namespace nsa::bench
