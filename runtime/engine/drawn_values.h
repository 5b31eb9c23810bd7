// Draws random tensors for tuning. Drawn values are nearly normal with variance 1, as activations are after
// normalisation.
// Thread-safety: that of the generator.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/device.h"

#include <cstdint>
#include <random>

namespace nsa {

// Fills `elements` values at `data`, in device memory, and adds `shift` to each. dtype: bf16, fp16 or fp32.
Status fillDrawn(Device &device, void *data, DType dtype, int64_t elements, float shift, std::mt19937_64 &generator);

// Draws how many bytes to leave unused in front of a tensor. The address of a tensor within its memory page decides
// with which other data it shares sets of the processor's cache, so the address is random too.
size_t drawSkipped(std::mt19937_64 &generator);

} // namespace nsa
