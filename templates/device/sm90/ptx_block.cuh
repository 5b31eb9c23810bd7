// What a block has of its own: its dynamic shared memory, and its place in the grid.
#pragma once

#include "types.cuh"

namespace nsa {

extern __shared__ __align__(128) unsigned char block_bytes[];

// The dynamic shared memory of the block. It begins at a multiple of 128 bytes.
NSA_DEVICE unsigned char *block_memory() { return block_bytes; }

} // namespace nsa
