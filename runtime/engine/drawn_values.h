// Draws random tensors for tuning. Drawn values are nearly normal with variance 1, as activations are after
// normalisation.
// Thread-safety: that of the generator.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/device.h"

#include <cstdint>
#include <random>

namespace nsa {

// Writes `elements` random values to device memory at `data`, and adds `shift` to each value. dtype: bf16, fp16 or
// fp32.
Status fillDrawn(Device &device, void *data, DType dtype, int64_t elements, float shift, std::mt19937_64 &generator);

// Draws how many bytes to leave unused in front of a tensor. The number is random because the address of a tensor
// within its memory page decides with which other data the tensor shares sets of the processor's cache.
size_t drawSkipped(std::mt19937_64 &generator);

} // namespace nsa
