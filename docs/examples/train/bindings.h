// The tensors of one call of the library. A tensor is [batch, time, heads, columns], and its rows lie `row` elements
// apart, so it may be a part of the columns of a larger matrix.
// Ownership: borrows the elements. Thread-safety: one thread at a time.
#pragma once

#include "geometry.h"

#include <nsa/nsa.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace example {

class Bindings {
public:
  explicit Bindings(std::int64_t batch) : batch(batch) {}

  // Inputs are only read, but nsa_tensor has one pointer for inputs and outputs.
  void add(nsa_name name, const float *data, std::int64_t time, std::int64_t row, std::int64_t heads,
           std::int64_t columns) {
    add(name, const_cast<float *>(data), NSA_FP32, {batch, time, heads, columns}, {time * row, row, columns, 1});
  }
  // A log-sum-exp: one number for each head.
  void addNumbers(nsa_name name, const float *data) {
    add(name, const_cast<float *>(data), NSA_FP32, {batch, kSequence, kHeads}, {kSequence * kHeads, kHeads, 1});
  }
  void addList(nsa_name name, const std::int32_t *data) {
    add(name, const_cast<std::int32_t *>(data), NSA_INT32, {batch, kSequence, kKvHeads, kSelCount},
        {kSequence * kKvHeads * kSelCount, kKvHeads * kSelCount, kSelCount, 1});
  }
  const nsa_binding *data() const { return bindings.data(); }
  std::size_t size() const { return bindings.size(); }

private:
  void add(nsa_name name, void *data, nsa_dtype dtype, const std::vector<std::int64_t> &shape,
           const std::vector<std::int64_t> &strides) {
    nsa_tensor &tensor = tensors.emplace_back(NSA_INIT(nsa_tensor));
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.rank = static_cast<std::int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.shape);
    std::copy(strides.begin(), strides.end(), tensor.strides);
    bindings.push_back({name, &tensor});
  }

  std::int64_t batch;
  std::deque<nsa_tensor> tensors; // whose addresses stay when more come
  std::vector<nsa_binding> bindings;
};

} // namespace example
