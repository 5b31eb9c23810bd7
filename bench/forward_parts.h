// The whole forward pass of Native Sparse Attention on one core, and each of its parts beside what the core can do:
// products against its fused multiply-adds, bytes against its memory.
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

// Adds a row for all of it and one for each part. The heads are the paper's, in fp32.
Status measureForwardParts(const CommonFlags &flags, const ForwardParts &choice, tools::Accelerator &accelerator,
                           BenchReport &report);

} // namespace nsa::bench
