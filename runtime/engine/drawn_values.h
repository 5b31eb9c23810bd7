// Random tensors for tuning: nearly normal with variance 1, as activations are after normalisation.
// Thread-safety: as the generator.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/device.h"

#include <cstdint>
#include <random>

namespace nsa {

// Fills `elements` values at `data`, in device memory, each with `shift` added. dtype: bf16, fp16 or fp32.
Status fillDrawn(Device &device, void *data, DType dtype, int64_t elements, float shift, std::mt19937_64 &generator);

// Bytes to leave unused before a tensor: where on its page it lies changes what it shares a cache set with.
size_t drawSkipped(std::mt19937_64 &generator);

} // namespace nsa
