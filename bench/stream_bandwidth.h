// Measures the bytes per second that cores move between memory and registers, in the same run as the kernels. It is the
// limit of kernels that compute very little.
// Thread-safety: one thread may use it; it starts its own.
#pragma once

#include <cstddef>
#include <vector>

namespace nsa::bench {

class StreamBandwidth {
public:
  // `bytes` is the size of both arrays together. It must be more than any cache holds, or the caches would be measured.
  explicit StreamBandwidth(int threads = 1, size_t bytes = size_t{512} << 20);

  // The rate of all threads together: the better one of reading an array and of copying it into the other. Copying
  // counts the bytes that it reads and those that it writes.
  double gigabytesPerSecond();

private:
  // Each thread has its part of the arrays.
  template <typename Work> double seconds(const Work &work) const;

  int threads;
  std::vector<float> from, to;
};

} // namespace nsa::bench
