// What the calling thread has allocated with operator new and locked with pthread's mutexes, libnsa.so's calls
// included: counted_calls.cpp replaces the functions for the whole program.
#pragma once

#include <cstddef>

// Sanitizers have locking functions of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NSA_COUNTS_LOCKS 0
#elif defined(__has_feature)
#define NSA_COUNTS_LOCKS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define NSA_COUNTS_LOCKS 1
#endif

namespace nsa::test {

extern thread_local size_t allocations;
extern thread_local size_t locks; // stays 0 where NSA_COUNTS_LOCKS is 0

} // namespace nsa::test
