#include "runtime/process/process.h"

#include <atomic>
#include <pthread.h>

namespace nsa {

namespace {
constinit std::atomic<uint32_t> generation{0};
} // namespace

uint32_t processGeneration() {
  // The first caller registers the handler. Nothing that was made before can be stale.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

} // namespace nsa
