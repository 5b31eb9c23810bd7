// Measures the bytes per second that cores move between memory and registers, in the same run as the kernels. A kernel
// that computes very little cannot be faster than the memory bandwidth allows.
// Thread-safety: one thread may use a StreamBandwidth, which starts its own threads.
#pragma once

#include <cstddef>
#include <vector>

namespace nsa::bench {

class StreamBandwidth {
public:
  // `bytes` is the total size of the two arrays that the measurement reads and writes. `bytes` must be more than the
  // processor's caches hold, or the bandwidth of the caches would be measured.
  explicit StreamBandwidth(int threads = 1, size_t bytes = size_t{512} << 20);

  // Returns the bytes per second of all threads together: the higher of two rates, of reading one array and of copying
  // it into the other array. For the rate of copying, the bytes read and the bytes written are both counted.
  double gigabytesPerSecond();

private:
  // Each thread works on its own part of the arrays `from` and `to`.
  template <typename Work> double seconds(const Work &work) const;

  int threads;
  std::vector<float> from, to;
};

} // namespace nsa::bench
