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
// A problem of many queries, whose plans use other kernels than tinyRequest: on some GPUs these kernels take tensor
// maps as arguments. A plan for many queries may be called with tensors as small as those of tinyRequest.
LaunchRequest crowdedRequest();

// Problems that differ in their keys in the database but are all computed by the same kernel. The database stores a
// separate choice for each problem that distinctRequests returns. There are at most 10,000.
constexpr int kMostDistinctRequests = 10000;
std::vector<LaunchRequest> distinctRequests(int count);

// Problems with shapes that real programs use; each problem needs a kernel binary of its own. `quick` gives two of
// these problems.
std::vector<LaunchRequest> realRequests(bool quick);

} // namespace nsa::bench
