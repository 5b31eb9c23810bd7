#include "tools/reference/tensor_view.h"

#include "tools/reference/elements.h"

namespace nsa::reference {

int64_t TensorView::offset(int64_t batch, int64_t time, int64_t head, int64_t column) const {
  if (pageRows > 0) {
    batch = pages[static_cast<size_t>(batch * pagesPerSequence + time / pageRows)];
    time %= pageRows;
  }
  return batch * batchStride + time * timeStride + head * headStride + column;
}

double TensorView::at(int64_t batch, int64_t time, int64_t head, int64_t column) const {
  return loadElement(dtype, data, offset(batch, time, head, column));
}

void TensorView::read(int64_t batch, int64_t time, int64_t head, std::span<double> columns) const {
  loadElements(dtype, data, offset(batch, time, head, 0), columns);
}

OwnedTensor OwnedTensor::make(DType dtype, int64_t batches, int64_t times, int64_t heads, int64_t columns) {
  OwnedTensor tensor{.dtype = dtype, .batches = batches, .times = times, .heads = heads, .columns = columns};
  // 0xff in every byte is a NaN of all io types.
  tensor.bytes.assign(static_cast<size_t>(batches * times * heads * columns * dtypeBytes(dtype)), std::byte{0xff});
  return tensor;
}

TensorView OwnedTensor::view() const {
  return {.data = bytes.data(),
          .dtype = dtype,
          .batchStride = times * heads * columns,
          .timeStride = heads * columns,
          .headStride = columns};
}

} // namespace nsa::reference
