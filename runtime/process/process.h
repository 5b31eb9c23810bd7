// Finds out whether the process is a child of a fork. Threads, CUDA contexts and sqlite connections do not survive a
// fork, so their owners compare the process generation in which they were made with the current generation.
// Thread-safety: any thread may call processGeneration, which is one relaxed load.
#pragma once

#include <cstdint>

namespace nsa {

// Returns the process generation: 0 in the process that loaded the library, 1 in its children, 2 in the children of
// these children, and so on.
uint32_t processGeneration();

} // namespace nsa
