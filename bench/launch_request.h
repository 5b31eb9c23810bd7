// The problems that nsa_bench_launch plans and runs.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <vector>

namespace nsa::bench {

struct LaunchRequest {
  Spec spec;
  Maxima maxima;
};

// A problem so small that only launching takes time.
LaunchRequest tinyRequest();
// A problem of many queries, whose plans have other kernels: on some GPUs these take tensor maps as arguments. Its
// calls may be as small as those of tinyRequest.
LaunchRequest crowdedRequest();

// Problems that the same kernel serves. Each has a choice of its own in the database. There are at most 10,000.
constexpr int kMostDistinctRequests = 10000;
std::vector<LaunchRequest> distinctRequests(int count);

// Problems of real programs, each with another binary. `quick` gives two of them.
std::vector<LaunchRequest> realRequests(bool quick);

} // namespace nsa::bench
