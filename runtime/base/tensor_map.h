// What a tensor map describes (runtime/base/manifest.h says what kernels take), and whether there can be one.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/kernel_arguments.h"

#include <cstdint>
#include <optional>

namespace nsa {

// Rows of a view [entry, time, head]; strides in elements.
struct TensorMapShape {
  const void *data = nullptr;
  DType dtype = DType::kBf16;
  int64_t columns = 0, heads = 0, rows = 0, entries = 0;
  int64_t headStride = 0, rowStride = 0, entryStride = 0; // a positive one where there is but one of them
  int64_t boxHeads = 0, boxRows = 0;

  bool operator==(const TensorMapShape &) const = default;
};

// Whether the view's rows of columns are known to belong to heads of queries, or of keys: those of q, k and v.
bool mayHaveTensorMap(View view);

// Nothing where the copy engine cannot address the view: absent, of unknown length, not aligned, of pages, or with a
// stride of heads or rows that is not positive, or one that does not fit its 40 bits.
std::optional<TensorMapShape> tensorMapShape(const KernelCall &call, View view, DType own, const ManifestParam &param);

} // namespace nsa
