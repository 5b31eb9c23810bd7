// Measures the processor's peak rate of fused multiply-adds in fp32, in the same run as the kernels. A report can
// therefore give the speed of a CPU kernel as a fraction of the processor's peak at its present clock rate.
// Thread-safety: one call at a time; the measurement starts its own threads.
#pragma once

namespace nsa::bench {

struct FmaPeak {
  int vectorBits = 0; // 512 or 256; 0: the processor has neither AVX-512 nor FMA
  int threads = 0;
  double gflops = 0; // of all threads together; a fused multiply-add counts as two operations
};

// Returns the highest rate of `repeats` runs of about 20 ms each. The highest rate is used because other processes can
// only lower the rate of a run.
FmaPeak measureFmaPeak(int threads, int repeats = 5);

} // namespace nsa::bench
