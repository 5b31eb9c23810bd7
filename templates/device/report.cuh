// Reports a broken rule in the status word of a launch (runtime/base/device_status.h): the code of the rule, and the
// number of the sequence that breaks it.
#pragma once

#include "view.cuh"

namespace nsa {

// All threads of the block call report() with the same arguments. If several blocks report, the status word keeps only
// the first report.
NSA_DEVICE void report(bool bad, int32 code, int32 place, const View<int32, 1> &status) {
  if (!bad || threadIdx.x != 0 || !status.present())
    return;
  if (atomicCAS(status.data, 0, code) == 0)
    status.data[status.strides[0]] = place;
}

} // namespace nsa
