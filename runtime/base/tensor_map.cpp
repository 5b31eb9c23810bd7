#include "runtime/base/tensor_map.h"

namespace nsa {
namespace {

constexpr int64_t kAlignment = 16;                     // bytes, of every stride
constexpr int64_t kMostStrideBytes = int64_t{1} << 40; // exclusive (CUDA driver API, cuTensorMapEncodeTiled)
constexpr int64_t kMostExtent = int64_t{1} << 32;

// A stride that nothing is ever multiplied with may be anything that is valid.
bool takeStride(int64_t extent, int64_t elements, int64_t elementBytes, int64_t &stride) {
  stride = extent > 1 ? elements : kAlignment / elementBytes;
  return stride > 0 && stride < kMostStrideBytes / elementBytes && extent >= 1 && extent < kMostExtent;
}

} // namespace

bool mayHaveTensorMap(View view) { return view == View::kQ || view == View::kK || view == View::kV; }

std::optional<TensorMapShape> tensorMapShape(const KernelCall &call, View view, DType dtype,
                                             const ManifestParam &param) {
  const ViewSlots &slots = call[view];
  if (!slots.data || slots.rows < 1 || slots.table || !(slots.flags & kViewRowsAligned16))
    return std::nullopt;
  TensorMapShape shape;
  shape.data = slots.data;
  shape.dtype = dtype;
  shape.columns = param.columns;
  shape.heads = view == View::kQ ? call.grid.queryHeads : call.grid.kvHeads;
  shape.rows = slots.rows;
  // Sequences of a packed batch share one entry.
  shape.entries = slots.strides[0] == 0 ? 1 : call.grid.batch;
  shape.boxHeads = param.boxHeads;
  shape.boxRows = param.boxRows;
  const int64_t bytes = dtypeBytes(shape.dtype);
  if (!takeStride(shape.heads, slots.strides[2], bytes, shape.headStride) ||
      !takeStride(shape.rows, slots.strides[1], bytes, shape.rowStride) ||
      !takeStride(shape.entries, slots.strides[0], bytes, shape.entryStride))
    return std::nullopt;
  return shape;
}

} // namespace nsa
