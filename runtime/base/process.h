// Tells a child of a fork from its parent. Threads, CUDA contexts and sqlite connections do not survive a fork, so
// their owners compare the process generation in which they were made with the current generation.
// Thread-safety: any thread may call processGeneration, which is one relaxed load.
#pragma once

#include <cstdint>

namespace nsa {

// Returns the generation: 0 in the process that loaded the library, one more in each child along a chain of forks.
uint32_t processGeneration();

} // namespace nsa
