#include "runtime/base/process.h"

#include <atomic>
#include <pthread.h>

namespace nsa {

namespace {
constinit std::atomic<uint32_t> generation{0};
} // namespace

uint32_t processGeneration() {
  // Registered by whoever asks first: nothing made before that can be stale.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

} // namespace nsa
