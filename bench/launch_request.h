// The problems that nsa_bench_launch plans and runs.
// Thread-safety: launch_request.h has only pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <vector>

namespace nsa::bench {

struct LaunchRequest {
  Spec spec;
  Maxima maxima;
};

// tinyRequest is a problem so small that only launching takes time.
LaunchRequest tinyRequest();
// A problem of many queries, whose plans have other kernels: on some GPUs these take tensor maps as arguments. Calls of
// the problem of many queries may be as small as calls of tinyRequest.
LaunchRequest crowdedRequest();

// Problems that the same kernel serves. Each of these problems has a choice of its own in the database. There are at
// most 10,000.
constexpr int kMostDistinctRequests = 10000;
std::vector<LaunchRequest> distinctRequests(int count);

// Problems of real programs, each with another binary. `quick` gives two of them.
std::vector<LaunchRequest> realRequests(bool quick);

} // namespace nsa::bench
