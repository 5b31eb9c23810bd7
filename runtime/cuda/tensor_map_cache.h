// Tensor maps that a thread has made lately: a serving loop runs the same tensors again and again, and making a map
// costs more than the rest of a launch. A map is a function of its shape alone, so none ever grows stale.
// Thread-safety: each thread has its own.
#pragma once

#include "runtime/base/tensor_map.h"
#include "runtime/cuda/context.h"

#include <array>
#include <cstdint>

namespace nsa::cuda {

// Copies the map of this shape to `slots`, ManifestParam::kMapSlots of them.
Status writeTensorMap(const PrimaryContext &context, const TensorMapShape &shape, uint64_t *slots);

} // namespace nsa::cuda
