// Assigns each thread one of a few shards. Data that threads often write is kept once for each shard, so that few
// threads write to the same cache line.
// Thread-safety: any thread. Two threads may get one shard, so the contents of a shard still need a lock or an atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nsa {

inline constexpr size_t kThreadShards = 16;
inline constexpr size_t kShardAlignment = 128; // two cache lines, because processors fetch them in pairs

// Threads get shards in the order of their first calls of threadShard.
inline size_t threadShard() {
  static constinit std::atomic<size_t> threads{0};
  static constinit thread_local size_t number = 0;
  if (number == 0)
    number = 1 + threads.fetch_add(1, std::memory_order_relaxed) % kThreadShards;
  return number - 1;
}

// A counter with one cell for each shard. `raise` adds 1 to the cell of the calling thread's shard.
class ShardedCounter {
public:
  void raise() { cells[threadShard()].value.fetch_add(1, std::memory_order_relaxed); }
  operator uint64_t() const { // NOLINT(google-explicit-constructor): read like the atomic that it stands for
    uint64_t sum = 0;
    for (const Cell &cell : cells)
      sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

private:
  struct alignas(kShardAlignment) Cell {
    std::atomic<uint64_t> value{0};
  };
  std::array<Cell, kThreadShards> cells;
};

} // namespace nsa
