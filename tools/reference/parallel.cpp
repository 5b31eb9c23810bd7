#include "tools/reference/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace nsa::reference {

void forEachIndex(int64_t count, int threads, int64_t least, const std::function<void(int64_t)> &work) {
  const int64_t workers = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr first; // guarded by mutex
  auto run = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++)
        work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!first)
        first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (int64_t t = 1; t < std::min(workers, count / least); ++t)
      pool.emplace_back(run);
    run();
  }
  if (first)
    std::rethrow_exception(first);
}

void forEachQuery(std::span<const Sequence> sequences, int threads,
                  const std::function<void(const Sequence &, int64_t)> &work) {
  std::vector<std::pair<const Sequence *, int64_t>> queries;
  int64_t longest = 1;
  for (const Sequence &sequence : sequences) {
    longest = std::max(longest, sequence.keys);
    for (int64_t query = 0; query < sequence.queries; ++query)
      queries.emplace_back(&sequence, query);
  }
  // A query of many keys is worth a thread of its own.
  forEachIndex(static_cast<int64_t>(queries.size()), threads, std::clamp<int64_t>(16384 / longest, 1, 16),
               [&](int64_t i) { work(*queries[i].first, queries[i].second); });
}

} // namespace nsa::reference
