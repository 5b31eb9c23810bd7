// Reports a broken rule in the status word of a launch (runtime/base/device_status.h): the code of the rule, and the
// number of the sequence that breaks it.
#pragma once

#include "view.cuh"

namespace nsa {

// All threads of the block call report() with the same arguments. Every launch has a status word. If several blocks
// report, one of the reports stays: code and place are one access, so they are of the same report. An access that keeps
// the first report would make every kernel longer.
NSA_DEVICE void report(bool bad, int32 code, int32 place, const View<int32, 1> &status) {
  struct alignas(8) Word {
    int32 code;
    int32 place;
  };
  if (bad && threadIdx.x == 0)
    *reinterpret_cast<Word *>(status.data) = {code, place};
}

} // namespace nsa
