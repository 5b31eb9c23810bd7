// View<T, R> is a strided tensor in the form in which the launcher passes it to a kernel. A View has a data pointer, R
// strides in elements, and flags. runtime/base/manifest.h describes the argument slots of a View. R coordinates select
// a row of the View; the columns of a row are contiguous in memory. Offsets into a View are 64-bit. The caller owns the
// memory of a View. A View whose data pointer is null means that the caller passed no tensor.
#pragma once

#include "types.cuh"

namespace nsa {

// The offset of a row of a View in elements from the data pointer, and whether the row exists. The memory of a row that
// does not exist is never read or written.
struct Row {
  int64 offset;
  bool exists;

  NSA_DEVICE Row only_if(bool condition) const { return {offset, exists && condition}; }

  // Returns the part of the row from `column` on.
  NSA_DEVICE Row from_column(int32 column) const { return {offset + column, exists}; }
};

template <typename T, int32 kRank> struct View {
  using Element = T;

  T *data;
  int64 strides[kRank];
  uint64 flags;

  NSA_DEVICE bool present() const { return data != nullptr; }

  // Returns whether the data pointer and all strides are multiples of 16 bytes, so that every row begins on a 16-byte
  // boundary.
  NSA_DEVICE bool rows_aligned() const { return (flags & 1) != 0; }

  NSA_DEVICE void set(int64 offset, T value) const { data[offset] = value; }

  template <typename... Index> NSA_DEVICE Row at(Index... index) const {
    static_assert(sizeof...(Index) == kRank, "a view takes one coordinate per stride");
    // The coordinates of a row that exists are never negative. Treating a coordinate as unsigned saves instructions in
    // its 64-bit multiplication by the stride.
    const int64 coordinates[kRank] = {static_cast<int64>(static_cast<uint32>(index))...};
    int64 offset = 0;
#pragma unroll
    for (int32 i = 0; i < kRank; ++i)
      offset += coordinates[i] * strides[i];
    return {offset, true};
  }
};

// Returns the element at R coordinates. The element must exist.
template <typename T, int32 kRank, typename... Index>
NSA_DEVICE T load_scalar(const View<T, kRank> &view, Index... index) {
  return view.data[view.at(index...).offset];
}

static_assert(sizeof(View<float, 3>) == 40, "a view of rank r takes r + 2 slots of 8 bytes");

} // namespace nsa
