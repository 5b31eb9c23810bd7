// A tensor of a kernel test, entries x time x heads x columns without gaps, between guard pages. Bytes that belong to
// no element are NaN. It owns its memory.
// Thread-safety: none needed, because one test uses one object.
#pragma once

#include "tests/unit/cpu/mapped_image.h"
#include "tools/reference/elements.h"

#include <random>
#include <vector>

namespace nsa::test {

struct GuardedTensor {
  GuardedTensor(DType dtype, int64_t entries, int64_t time, int64_t heads, int64_t columns)
      : dtype(dtype), entries(entries), time(time), heads(heads), columns(columns),
        memory(size_t(entries * time * heads * columns * dtypeBytes(dtype))) {}

  void draw(std::mt19937 &engine) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < entries * time * heads * columns; ++i)
      reference::storeElement(dtype, memory.as<std::byte>(), i, normal(engine));
  }
  // All heads at one time.
  void poison(int64_t row) {
    const size_t bytes = size_t(heads * columns * dtypeBytes(dtype));
    std::memset(memory.as<char>() + size_t(row) * bytes, 0xff, bytes);
  }
  float at(int64_t entry, int64_t t, int64_t head, int64_t column) {
    return reference::loadElement(dtype, memory.as<std::byte>(), index(entry, t, head, column));
  }
  void set(int64_t entry, int64_t t, int64_t head, int64_t column, float value) {
    reference::storeElement(dtype, memory.as<std::byte>(), index(entry, t, head, column), value);
  }
  // Of the coordinates entry, time, head and, where the kernel addresses them too, column.
  std::vector<int64_t> strides(int rank = 3) const {
    std::vector<int64_t> all = {time * heads * columns, heads * columns, columns, 1};
    all.resize(size_t(rank));
    return all;
  }

  DType dtype;
  int64_t entries, time, heads, columns;
  GuardedBuffer memory;

private:
  int64_t index(int64_t entry, int64_t t, int64_t head, int64_t column) const {
    return ((entry * time + t) * heads + head) * columns + column;
  }
};

// The same for counts, one for each entry, time and head. A count that was not written is -1.
struct GuardedCounts {
  GuardedCounts(int64_t entries, int64_t time, int64_t heads)
      : time(time), heads(heads), memory(size_t(4 * entries * time * heads)) {}

  int32_t &at(int64_t entry, int64_t t, int64_t head) {
    return memory.as<int32_t>()[(entry * time + t) * heads + head];
  }
  std::vector<int64_t> strides() const { return {time * heads, heads, 1}; }

  int64_t time, heads;
  GuardedBuffer memory;
};

} // namespace nsa::test
