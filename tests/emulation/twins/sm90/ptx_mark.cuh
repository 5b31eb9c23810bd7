// Twin of templates/device/sm90/ptx_mark.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE int32 load_number(const int32 *source) { return *source; }
NSA_DEVICE uint64 load_mark(const uint64 *mark) { return *mark; }
NSA_DEVICE void store_mark(uint64 *mark, uint64 value) { *mark = value; }
NSA_DEVICE void fence_marks() {}

} // namespace nsa
