// The status word of a launch (runtime/base/device_status.h): code and place of the first violation.
#pragma once

#include "view.cuh"

namespace nsa {

// All threads of the block call it with the same arguments. The first reporter of the grid wins.
NSA_DEVICE void report(bool bad, int32 code, int32 place, const View<int32, 1> &status) {
  if (!bad || threadIdx.x != 0 || !status.present())
    return;
  if (atomicCAS(status.data, 0, code) == 0)
    status.data[status.strides[0]] = place;
}

} // namespace nsa
