// Describes a tensor map, by which the copy engine of a GPU reads a view, and says whether a view can have a tensor
// map. runtime/base/manifest.h says how kernels receive tensor maps.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/kernel_arguments.h"

#include <cstdint>
#include <optional>

namespace nsa {

// The memory of a view with the dimensions [entry, time, head], as a tensor map describes it. The strides of a
// TensorMapShape are in elements.
struct TensorMapShape {
  const void *data = nullptr;
  DType dtype = DType::kBf16;
  int64_t columns = 0, heads = 0, rows = 0, entries = 0;
  int64_t headStride = 0, rowStride = 0, entryStride = 0; // positive also where the dimension has the extent 1
  int64_t boxHeads = 0, boxRows = 0;

  bool operator==(const TensorMapShape &) const = default;
};

// Returns whether a view may have a tensor map. Only the views of q, k and v may have tensor maps, because only their
// number of heads is known.
bool mayHaveTensorMap(View view);

// Returns nullopt where the copy engine cannot address the view: the view is absent, not aligned or has pages, its
// extent in time is not known, or a stride or an extent is not positive or too large for a map (CUDA driver API,
// cuTensorMapEncodeTiled).
std::optional<TensorMapShape> tensorMapShape(const KernelCall &call, View view, DType dtype,
                                             const ManifestParam &param);

} // namespace nsa
