// Elements of an array whose type is known at run time.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nsa::reference {

// `dtype` is a floating point one; `index` counts elements.
float loadElement(DType dtype, const std::byte *data, int64_t index);
// The elements from `index` on, as many as `values` has.
void loadElements(DType dtype, const std::byte *data, int64_t index, std::span<double> values);
// Rounds once, from fp64 to nearest even.
void storeElement(DType dtype, std::byte *data, int64_t index, double value);

} // namespace nsa::reference
