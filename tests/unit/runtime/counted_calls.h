// What the calling thread has allocated with malloc and what ends in it, and locked with pthread's mutexes, libnsa.so's
// calls included: counted_calls.cpp replaces the functions for the whole program. Memory can be refused to all of it.
#pragma once

#include <atomic>
#include <cstddef>

// Sanitizers have such functions of their own, which may not be replaced.
#if defined(NSA_ADDRESS_SANITIZER) || defined(NSA_THREAD_SANITIZER)
#define NSA_COUNTS_CALLS 0
#else
#define NSA_COUNTS_CALLS 1
#endif

namespace nsa::test {

// Both stay 0 where NSA_COUNTS_CALLS is 0.
extern thread_local size_t allocations;
extern thread_local size_t locks;
// So many bytes at once, or more, are not to be had, of any thread.
extern std::atomic<size_t> leastRefused;

} // namespace nsa::test
