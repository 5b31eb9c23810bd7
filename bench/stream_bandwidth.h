// What cores move between memory and their registers, measured in the same run as the kernels: the roof of those that
// compute next to nothing.
// Thread-safety: one thread may use it; it starts its own.
#pragma once

#include <cstddef>
#include <vector>

namespace nsa::bench {

class StreamBandwidth {
public:
  // Two arrays of this many bytes together; more than any cache holds, or they measure the cache.
  explicit StreamBandwidth(int threads = 1, size_t bytes = size_t{512} << 20);

  // Of all threads together: the better of reading one array and of copying it into the other, which counts what it
  // reads and what it writes.
  double gigabytesPerSecond();

private:
  // Each thread has its part of the arrays.
  template <typename Work> double seconds(const Work &work) const;

  int threads;
  std::vector<float> from, to;
};

} // namespace nsa::bench
