// Twin of templates/device/ptx_load.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE int32 load_unchanging(const int32 *source) { return *source; }

} // namespace nsa
