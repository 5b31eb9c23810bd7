// A spec and maxima that keep all rules, for tests that break one.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

namespace nsa {

inline Spec validSpec() {
  Spec spec;
  spec.op = Operator::kWindow;
  spec.queryHeads = 32;
  spec.kvHeads = 4;
  spec.qkDim = 192;
  spec.vDim = 128;
  spec.window = 512;
  return spec;
}

inline constexpr Maxima kMaxima{2, 4096, 2048, 2048};

} // namespace nsa
