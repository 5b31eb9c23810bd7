// Work shared among threads. Each call starts its threads and waits for them, which costs less than a tenth of a
// millisecond: little beside the matrix products of a training step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace example {

inline int threadCount() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// Calls body(begin, end) for consecutive parts of [0, count), one part on each thread. `body` must not throw.
template <typename Body> void parallelFor(std::int64_t count, const Body &body) {
  const std::int64_t parts = std::clamp<std::int64_t>(threadCount(), 1, std::max<std::int64_t>(count, 1));
  std::vector<std::thread> threads;
  for (std::int64_t part = 1; part < parts; ++part)
    threads.emplace_back([&body, part, parts, count] { body(count * part / parts, count * (part + 1) / parts); });
  body(std::int64_t{0}, count / parts);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace example
