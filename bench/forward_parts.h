// Measures the whole forward pass of Native Sparse Attention on one core, and each part of the pass. A part that
// computes products is compared with the core's peak rate of fused multiply-adds, and a part that moves bytes with the
// core's memory bandwidth.
// Thread-safety: one thread.
#pragma once

#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "tools/support/accelerator.h"

#include <cstdint>

namespace nsa::bench {

struct ForwardParts {
  int64_t tokens = 4096;
  int samples = 5;
  bool tuned = false;
  double tuneBudget = 30;
};

// Adds a row for the whole forward pass and a row for each part of it. The tensors are fp32, with as many query heads
// and kv heads as in the NSA paper, or fewer with --quick.
Status measureForwardParts(const CommonFlags &flags, const ForwardParts &choice, tools::Accelerator &accelerator,
                           BenchReport &report);

} // namespace nsa::bench
