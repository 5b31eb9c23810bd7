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

// Returns a problem so small that the launch of its kernel takes almost all of the time.
LaunchRequest tinyRequest();
// Returns a problem with many queries. The plans of crowdedRequest use other kernels than the plans of tinyRequest, and
// on some GPUs these kernels take tensor maps as arguments. A plan for many queries may also be run with the small
// tensors of tinyRequest.
LaunchRequest crowdedRequest();

// distinctRequests returns up to 10,000 problems that have different keys in the kernel database. nsa_bench_launch
// stores a choice for each of these problems, although at most two kernels compute all of them: one kernel for few
// queries and one for many.
constexpr int kMostDistinctRequests = 10000;
std::vector<LaunchRequest> distinctRequests(int count);

// Returns problems with shapes that real programs use. Each problem needs a kernel binary of its own. With `quick`,
// only two problems are returned.
std::vector<LaunchRequest> realRequests(bool quick);

} // namespace nsa::bench
