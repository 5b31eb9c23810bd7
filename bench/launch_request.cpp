#include "bench/launch_request.h"

#include <algorithm>
#include <random>

namespace nsa::bench {

LaunchRequest tinyRequest() {
  LaunchRequest tiny;
  tiny.spec.queryHeads = tiny.spec.kvHeads = 1;
  tiny.spec.qkDim = tiny.spec.vDim = 64;
  tiny.spec.window = 16;
  tiny.maxima = {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 1};
  return tiny;
}

LaunchRequest crowdedRequest() {
  LaunchRequest crowded = tinyRequest();
  crowded.maxima = {.batch = 512, .tokensQ = 512 * 512, .seqlenQ = 512, .seqlenK = 1024};
  return crowded;
}

std::vector<LaunchRequest> distinctRequests(int count) {
  std::vector<LaunchRequest> requests;
  for (int i = 0; i < kMostDistinctRequests; ++i) {
    LaunchRequest request = tinyRequest();
    auto power = [&](int divisor) { return int64_t{1} << (i / divisor % 10); };
    request.spec.window = static_cast<int32_t>(power(1));
    request.maxima.batch = power(10);
    request.maxima.seqlenQ = power(100);
    request.maxima.seqlenK = 1024 * power(1000);
    request.maxima.tokensQ = request.maxima.batch * request.maxima.seqlenQ;
    requests.push_back(request);
  }
  // The order of the database's keys must not be that of the calls, and it is the same in every run.
  // NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::shuffle(requests.begin(), requests.end(), std::mt19937_64(1));
  requests.resize(static_cast<size_t>(std::min(count, kMostDistinctRequests)));
  return requests;
}

std::vector<LaunchRequest> realRequests(bool quick) {
  std::vector<LaunchRequest> requests;
  for (const MetKeys keys : {MetKeys::kWindow, MetKeys::kAll})
    for (int32_t group : {1, 16})
      for (int32_t dim : {64, 128}) {
        LaunchRequest request = tinyRequest();
        request.spec.op = std::ranges::find(publicOperators(), keys, &OperatorDef::keys)->op;
        request.spec.queryHeads = group * 4;
        request.spec.kvHeads = 4;
        request.spec.qkDim = request.spec.vDim = dim;
        request.spec.window = 512;
        request.maxima = {.batch = 1, .tokensQ = 4096, .seqlenQ = 4096, .seqlenK = 4096};
        requests.push_back(request);
      }
  if (quick)
    requests.resize(2);
  return requests;
}

} // namespace nsa::bench
