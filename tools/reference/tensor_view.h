// Tensors as all operators of the reference address them: borrowed memory, a type, strides, and perhaps a page table.
// Ownership: views borrow. Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nsa::reference {

// A strided tensor addressed by (batch, time, head, column). Packed tensors have batch stride 0; LSE has one column.
// Weights have no batch: pe is (0, i, 0, column), W (0, i, row, column), b (0, 0, 0, column).
struct TensorView {
  const std::byte *data = nullptr; // null: the tensor is not given
  DType dtype = DType::kF32;
  int64_t batchStride = 0; // elements; of a paged pool from page to page
  int64_t timeStride = 0;
  int64_t headStride = 0;
  // A paged pool (docs/specification.md 10): row `time` of sequence `batch` lies in page
  // pages[batch * pagesPerSequence + time / pageRows].
  std::span<const int32_t> pages{};
  int64_t pagesPerSequence = 0;
  int64_t pageRows = 0;

  bool isGiven() const { return data != nullptr; }
  int64_t offset(int64_t batch, int64_t time, int64_t head, int64_t column) const; // elements
  double at(int64_t batch, int64_t time, int64_t head, int64_t column) const;
  // A row's columns from 0 on, as many as `columns` has.
  void read(int64_t batch, int64_t time, int64_t head, std::span<double> columns) const;
};

// Contiguous [batches, times, heads, columns] of an io type with its memory; new memory holds NaN in all elements.
struct OwnedTensor {
  DType dtype = DType::kF32;
  int64_t batches = 0, times = 0, heads = 0, columns = 0;
  std::vector<std::byte> bytes{};

  static OwnedTensor make(DType dtype, int64_t batches, int64_t times, int64_t heads, int64_t columns);
  TensorView view() const;
};

} // namespace nsa::reference
