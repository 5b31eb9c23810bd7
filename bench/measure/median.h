// The median of samples.
// Thread-safety: a pure function.
#pragma once

#include <algorithm>
#include <vector>

namespace nsa::bench {

inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : samples[samples.size() / 2];
}

} // namespace nsa::bench
