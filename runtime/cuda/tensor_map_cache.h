// Tensor maps that a thread has made lately: a serving loop runs the same tensors again and again, and making a map
// costs more than the rest of a launch. A map is a function of its shape alone, so none ever grows stale.
// Thread-safety: TensorMapCache: one thread; writeTensorMap: each thread has its own.
#pragma once

#include "runtime/base/tensor_map.h"
#include "runtime/cuda/context.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace nsa::cuda {

// Few enough maps to stay in a core's first cache. A shape has one set of places, of which a new one takes the place
// that was used longest ago: the tensors of several calls in turns may share a set.
class TensorMapCache {
public:
  static constexpr size_t kSets = 8, kWays = 4;
  static size_t setOf(const TensorMapShape &shape);

  // The map of this shape; where it is not there, `encode(shape, map)` makes it. Valid until the next call.
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
    TensorMapShape shape; // no data: empty
    TensorMap map = {};
    uint64_t used = 0; // the use that was its last
  };
  std::array<std::array<Entry, kWays>, kSets> sets;
  uint64_t uses = 0;
};

// Copies the map of this shape to `slots`, ManifestParam::kMapSlots of them.
Status writeTensorMap(const PrimaryContext &context, const TensorMapShape &shape, uint64_t *slots);

} // namespace nsa::cuda
