// Memory that ends where a page begins that cannot be accessed, so that an access behind it is a segmentation fault. So
// is one before the page in which the memory begins.
#pragma once

#include <cstddef>

namespace emulator {

// Returns memory of `bytes` bytes that cannot be accessed yet. It is never given back.
unsigned char *endingMemory(size_t bytes);

// Sets what may be done with memory from endingMemory: PROT_NONE, or PROT_READ | PROT_WRITE.
void protectMemory(unsigned char *memory, size_t bytes, int protection);

} // namespace emulator
