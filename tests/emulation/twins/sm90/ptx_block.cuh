// Twin of templates/device/sm90/ptx_block.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE unsigned char *block_memory() { return emulator::sharedMemory(); }

} // namespace nsa
