#include "tests/unit/runtime/counted_calls.h"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>

namespace nsa::test {
thread_local size_t allocations = 0;
thread_local size_t locks = 0;
std::atomic<size_t> leastRefused = SIZE_MAX;
} // namespace nsa::test

#if NSA_COUNTS_CALLS
void *operator new(size_t bytes) {
  ++nsa::test::allocations;
  if (bytes < nsa::test::leastRefused)
    if (void *memory = std::malloc(bytes ? bytes : 1))
      return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

// NOLINTBEGIN(bugprone-macro-parentheses): a parameter's type takes none
#define NSA_COUNT_LOCKS(function, type)                                                                                \
  extern "C" __attribute__((visibility("default"))) int function(type *lock) {                                         \
    static const auto real = reinterpret_cast<int (*)(type *)>(dlsym(RTLD_NEXT, #function));                           \
    ++nsa::test::locks;                                                                                                \
    return real(lock);                                                                                                 \
  }
// NOLINTEND(bugprone-macro-parentheses)
NSA_COUNT_LOCKS(pthread_mutex_lock, pthread_mutex_t)
NSA_COUNT_LOCKS(pthread_mutex_trylock, pthread_mutex_t)
NSA_COUNT_LOCKS(pthread_rwlock_rdlock, pthread_rwlock_t)
NSA_COUNT_LOCKS(pthread_rwlock_wrlock, pthread_rwlock_t)
#undef NSA_COUNT_LOCKS
#endif
