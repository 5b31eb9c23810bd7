// Tensors of template tests: [batches, times, heads, columns] between guard pages, with gaps that must not be touched.
// All elements are NaN until they are drawn; those of int32 are kUntouched. Each tensor owns its memory.
// Thread-safety: one test uses it.
#pragma once

#include "tests/unit/cpu/mapped_image.h"
#include "tools/reference/elements.h"
#include "tools/reference/tensor_view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace nsa::test {

class GappedTensor {
public:
  static constexpr int32_t kUntouched = -7;

  GappedTensor(DType dtype, int64_t batches, int64_t times, int64_t heads, int64_t columns)
      : dtype(dtype), batches(batches), times(times), heads(heads), columns(columns), headStride(columns + kGap),
        timeStride(heads * headStride), batchStride(times * timeStride + 2 * kGap),
        memory(size_t(std::max<int64_t>(batches * batchStride - 3 * kGap, 1) * dtypeBytes(dtype))) {
    if (dtype == DType::kI32)
      std::ranges::fill(words(), kUntouched);
  }

  int64_t index(int64_t batch, int64_t time, int64_t head, int64_t column) const {
    return batch * batchStride + time * timeStride + head * headStride + column;
  }
  void set(int64_t index, double value) { reference::storeElement(dtype, memory.as<std::byte>(), index, float(value)); }
  float at(int64_t batch, int64_t time, int64_t head, int64_t column) {
    return reference::loadElement(dtype, memory.as<std::byte>(), index(batch, time, head, column));
  }
  int32_t &integer(int64_t batch, int64_t time, int64_t head, int64_t column) {
    return memory.as<int32_t>()[index(batch, time, head, column)];
  }

  std::span<int32_t> words() { return {memory.as<int32_t>(), memory.size() / 4}; }

  void draw(std::mt19937 &engine, int64_t batch, int64_t time, double deviation = 1) {
    std::normal_distribution<double> normal(0, deviation);
    setAll(batch, time, [&] { return normal(engine); });
  }
  void poison(int64_t batch, int64_t time) {
    setAll(batch, time, [] { return std::numeric_limits<double>::quiet_NaN(); });
  }
  void copyFrom(GappedTensor &other) { std::memcpy(memory.as<char>(), other.memory.as<char>(), memory.size()); }

  // Bit by bit, gaps too.
  bool equals(GappedTensor &other) {
    return std::memcmp(memory.as<char>(), other.memory.as<char>(), memory.size()) == 0;
  }

  void *data() { return memory.as<void>(); }
  reference::TensorView view() { return {memory.as<std::byte>(), dtype, batchStride, timeStride, headStride}; }
  // Coordinates (batch, time, head).
  std::vector<int64_t> strides() const { return {batchStride, timeStride, headStride}; }

  const DType dtype;
  const int64_t batches, times, heads, columns;

private:
  static constexpr int64_t kGap = 3;

  template <typename Value> void setAll(int64_t batch, int64_t time, Value value) {
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t column = 0; column < columns; ++column)
        set(index(batch, time, head, column), value());
  }

  const int64_t headStride, timeStride, batchStride;
  GuardedBuffer memory;
};

} // namespace nsa::test
