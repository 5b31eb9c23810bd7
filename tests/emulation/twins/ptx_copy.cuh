// Twin of templates/device/ptx_copy.cuh. A shared address is an offset into the block's shared memory.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE uint32 shared_address(const void *pointer) { return emulator::sharedOffset(pointer); }
NSA_DEVICE void cp_async_16(uint32 destination, const void *source, int32 bytes) {
  emulator::beginCopy(destination, source, bytes);
}
NSA_DEVICE void commit_copies() { emulator::commitCopies(); }
template <int32 kPending> NSA_DEVICE void wait_copies() { emulator::waitCopies(kPending); }

} // namespace nsa
