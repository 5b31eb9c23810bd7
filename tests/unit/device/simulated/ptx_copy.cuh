// Twin of templates/device/ptx_copy.cuh. A shared address is an offset into the block's shared memory.
#pragma once

#include "simulator.h"
#include "types.cuh"

namespace nsa {

inline uint32 shared_address(const void *pointer) {
  auto offset = static_cast<const unsigned char *>(pointer) - shared_memory;
  simulator::check(offset >= 0 && offset < static_cast<ptrdiff_t>(simulator::kSharedBytes),
                   "a pointer is not in shared memory");
  return static_cast<uint32>(offset);
}

inline void cp_async_16(uint32 destination, const void *source, int32 bytes) {
  simulator::beginCopy(destination, source, bytes);
}
inline void commit_copies() { simulator::commitCopies(); }
template <int32 kPending> void wait_copies() { simulator::waitCopies(kPending); }

} // namespace nsa
