// Draws random tensors for tuning. Drawn values are nearly normal with variance 1, as activations are after
// normalisation.
// Thread-safety: one thread at a time may use a generator.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/device/device.h"

#include <cstdint>
#include <random>

namespace nsa {

// Writes `elements` random values to device memory at `data`, and adds `shift` to each value. dtype: bf16, fp16 or
// fp32.
Status fillDrawn(Device &device, void *data, DType dtype, int64_t elements, float shift, std::mt19937_64 &generator);

// Returns a random number of bytes to leave unused in front of a tensor. A tensor's address within its memory page
// decides which other data use the same sets of the processor's cache. With random addresses, repeated measurements do
// not all have the same cache conflicts.
size_t drawSkipped(std::mt19937_64 &generator);

} // namespace nsa
