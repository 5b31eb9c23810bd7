// Keeps the tensor maps that a thread made most recently. A serving loop runs the same tensors again and again, and
// making a map costs more than the rest of a launch. A tensor map depends only on its TensorMapShape, so a kept map is
// always valid.
// Thread-safety: only one thread at a time may use a TensorMapCache; writeTensorMap has one for each thread.
#pragma once

#include "runtime/base/tensor_map.h"
#include "runtime/cuda/context.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace nsa::cuda {

// A cache of tensor maps, small enough for a core's first-level cache. A shape belongs to one set of the cache, and a
// new shape replaces the shape of its set that was not used for longest. A set of the cache holds several shapes,
// because alternating calls may use shapes that belong to one set.
class TensorMapCache {
public:
  static constexpr size_t kSets = 8, kWays = 4;
  static size_t setOf(const TensorMapShape &shape);

  // Returns the tensor map of a shape. If the cache does not have the map, `find` calls `encode(shape, map)` to make
  // it. The returned pointer is valid until the next call of `find`.
  template <typename Encode> Result<const TensorMap *> find(const TensorMapShape &shape, const Encode &encode) {
    std::array<Entry, kWays> &set = sets[setOf(shape)];
    auto entry = std::ranges::find(set, shape, &Entry::shape);
    if (entry == set.end()) {
      entry = std::ranges::min_element(set, {}, &Entry::used);
      *entry = {};
      NSA_RETURN_IF_ERROR(encode(shape, entry->map));
      entry->shape = shape;
    }
    entry->used = ++uses;
    return &entry->map;
  }

private:
  struct Entry {
    TensorMapShape shape; // without data: the place is empty
    TensorMap map = {};
    uint64_t used = 0; // number of the place's last use
  };
  std::array<std::array<Entry, kWays>, kSets> sets;
  uint64_t uses = 0;
};

// Copies the tensor map of a shape to `slots`, an array of ManifestParam::kMapSlots values.
Status writeTensorMap(const PrimaryContext &context, const TensorMapShape &shape, uint64_t *slots);

} // namespace nsa::cuda
