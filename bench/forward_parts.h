// Measures the whole forward pass of Native Sparse Attention on one core, and each part of the pass beside a peak of
// the core: products beside the peak of fused multiply-adds, and bytes beside the rate of memory.
// Thread-safety: one thread.
#pragma once

#include "bench/bench_program.h"
#include "bench/bench_report.h"
#include "tools/support/accelerator.h"

#include <cstdint>

namespace nsa::bench {

struct ForwardParts {
  int64_t tokens = 4096;
  int samples = 5;
  bool tuned = false;
  double tuneBudget = 30;
};

// Adds a row for the whole forward pass and a row for each part of it. The heads are the heads of the NSA paper, in
// fp32.
Status measureForwardParts(const CommonFlags &flags, const ForwardParts &choice, tools::Accelerator &accelerator,
                           BenchReport &report);

} // namespace nsa::bench
