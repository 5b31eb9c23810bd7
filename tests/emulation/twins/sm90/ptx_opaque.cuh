// Twin of what decode_step uses of templates/device/sm90/ptx_opaque.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE int32 opaque(int32 value) { return value; }

} // namespace nsa
