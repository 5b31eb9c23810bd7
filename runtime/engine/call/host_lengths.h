// Checks sequence lengths in host memory by the same rules by which kernels check them in device memory. The error of a
// bad number names the tensor and the index. Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call/call.h"

namespace nsa {

// Element i of a rank-1 int32 view in host memory.
inline int64_t lengthAt(const ViewSlots &view, int64_t i) {
  return static_cast<const int32_t *>(view.data)[i * view.strides[0]];
}

// Checks the numbers in K_OFFSET, and in a packed call those in CU_SEQLENS_Q and CU_SEQLENS_K. In a call of decode,
// also checks CACHE_SEQLENS, and for each sequence with new tokens the entries of BLOCK_TABLE for the pages of all its
// tokens.
Status checkHostLengths(const CallRules &rules, const Call &call);
// Checks the batch + 1 offsets of a cu_seqlens tensor in host memory. The offsets must begin with 0, must not decrease,
// and must be at most `total`, which the error calls `totalName`.
Status checkHostOffsets(const char *name, const ViewSlots &view, int64_t batch, int64_t total, const char *totalName);

} // namespace nsa
