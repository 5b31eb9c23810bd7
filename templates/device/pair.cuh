// Pair<T>: two neighbouring columns of a row. A thread holds its elements of a tile as Pairs, and loads and stores them
// as Pairs.
#pragma once

#include "ptx_convert.cuh"

namespace nsa {

// A pair of 16-bit elements is one register, as mma instructions expect it.
template <typename T> struct alignas(2 * sizeof(T)) Pair {
  T values[2];

  NSA_DEVICE static Pair make(T low, T high) { return {{low, high}}; }
  NSA_DEVICE T get(int32 index) const { return values[index]; }
};

template <typename T>
  requires kIsHalf<T>
struct Pair<T> {
  uint32 bits;

  NSA_DEVICE static Pair make(T low, T high) {
    return {static_cast<uint32>(low.bits) | static_cast<uint32>(high.bits) << 16};
  }
  NSA_DEVICE static Pair make(float low, float high) {
    if constexpr (kSameType<T, bf16>)
      return {pack_bf16(low, high)};
    else
      return {pack_f16(low, high)};
  }
  NSA_DEVICE T get(int32 index) const { return T{static_cast<uint16>(bits >> (16 * index))}; }
};

// Returns how many of the `count` columns that begin at column `first` have a number below `columns`.
NSA_DEVICE constexpr int32 columns_from(int32 first, int32 columns, int32 count) {
  const int32 left = columns - first;
  return left <= 0 ? 0 : left < count ? left : count;
}

// Loads the first `elements` (0, 1 or 2) of two neighbouring columns; the columns that are not loaded are zero. If
// `together` is true, `source` is aligned to the size of a Pair, so one access may load the two columns.
template <typename T> NSA_DEVICE Pair<T> load_pair(const T *source, int32 elements, bool together) {
  if (together && elements == 2)
    return *reinterpret_cast<const Pair<T> *>(source);
  const T zero{};
  return Pair<T>::make(elements > 0 ? source[0] : zero, elements > 1 ? source[1] : zero);
}

// Stores the first `elements` columns of a Pair. If `together` is true, `target` is aligned to the size of a Pair, so
// one access may store the two columns.
template <typename T> NSA_DEVICE void store_pair(T *target, Pair<T> pair, int32 elements, bool together) {
  if (together && elements == 2) {
    *reinterpret_cast<Pair<T> *>(target) = pair;
    return;
  }
  if (elements > 0)
    target[0] = pair.get(0);
  if (elements > 1)
    target[1] = pair.get(1);
}

} // namespace nsa
