// Tells a child of a fork from its parent. Threads, CUDA contexts and sqlite connections do not survive a fork, so the
// owner of such an object compares the process generation in which it was made with the current one.
// Thread-safety: any thread; one relaxed load.
#pragma once

#include <cstdint>

namespace nsa {

// Returns the generation: 0 in the process that loaded the library, one more in each child along a chain of forks.
uint32_t processGeneration();

} // namespace nsa
