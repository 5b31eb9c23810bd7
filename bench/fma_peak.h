// The processor's peak of fused multiply-adds in fp32, measured in the same run as the kernels, so that a CPU
// result can be read as a fraction of what this machine can do at its present clock.
// Thread-safety: one call at a time; starts its own threads.
#pragma once

namespace nsa::bench {

struct FmaPeak {
  int vectorBits = 0; // 512 or 256; 0: the processor has neither AVX-512 nor FMA
  int threads = 0;
  double gflops = 0; // all threads together, two operations per fused multiply-add
};

// The best of `repeats`, each of about 20 ms: a peak is what the machine can do, not what it did beside its neighbours.
FmaPeak measureFmaPeak(int threads, int repeats = 5);

} // namespace nsa::bench
