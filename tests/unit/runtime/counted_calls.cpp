#include "tests/unit/runtime/counted_calls.h"

#include <cerrno>
#include <cstdint>
#include <dlfcn.h>
#include <pthread.h>

namespace nsa::test {
thread_local size_t allocations = 0;
thread_local size_t locks = 0;
std::atomic<size_t> leastRefused = SIZE_MAX;
} // namespace nsa::test

#if NSA_COUNTS_CALLS
// operator new ends in malloc, in libnsa.so too, which has an operator new of its own inside. glibc's functions have
// these names besides: dlsym would allocate before it had found them.
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

#define NSA_EXPORTED __attribute__((visibility("default")))

static bool mayAllocate(size_t bytes) {
  ++nsa::test::allocations;
  if (bytes < nsa::test::leastRefused)
    return true;
  errno = ENOMEM;
  return false;
}
NSA_EXPORTED void *malloc(size_t bytes) { return mayAllocate(bytes) ? __libc_malloc(bytes) : nullptr; }
NSA_EXPORTED void *calloc(size_t count, size_t bytes) {
  size_t all = 0;
  return !__builtin_mul_overflow(count, bytes, &all) && mayAllocate(all) ? __libc_calloc(count, bytes) : nullptr;
}
NSA_EXPORTED void *realloc(void *memory, size_t bytes) {
  return mayAllocate(bytes) ? __libc_realloc(memory, bytes) : nullptr;
}
NSA_EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) {
  return mayAllocate(bytes) ? __libc_memalign(alignment, bytes) : nullptr;
}
NSA_EXPORTED int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = mayAllocate(bytes) ? __libc_memalign(alignment, bytes) : nullptr;
  return *memory ? 0 : ENOMEM;
}
}

// NOLINTBEGIN(bugprone-macro-parentheses): a parameter's type takes none
#define NSA_COUNT_LOCKS(function, type)                                                                                \
  extern "C" NSA_EXPORTED int function(type *lock) {                                                                   \
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
