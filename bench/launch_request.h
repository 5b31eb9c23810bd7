// The problems that nsa_bench_launch plans and runs. Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <vector>

namespace nsa::bench {

struct LaunchRequest {
  Spec spec;
  Maxima maxima;
};

// Small enough that launching is all there is to measure.
LaunchRequest tinyRequest();
// The same for plans of many queries, which have kernels of their own: on some GPUs with tensor maps among their
// arguments. Its calls may be as small.
LaunchRequest crowdedRequest();

// Problems that one kernel serves, each with a choice of its own in the database; at most 10,000.
constexpr int kMostDistinctRequests = 10000;
std::vector<LaunchRequest> distinctRequests(int count);

// Kernels as programs have them, each another binary. `quick`: two of them.
std::vector<LaunchRequest> realRequests(bool quick);

} // namespace nsa::bench
