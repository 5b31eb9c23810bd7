// The key of the plan map: everything of a request that makes a plan another one. A plain struct of integers, so that
// its bytes are its identity: hashed with XXH3-128 and compared as a whole.
#pragma once

#include "runtime/base/digest.h"
#include "runtime/base/problem.h"

#include <bit>
#include <functional>
#include <type_traits>

namespace nsa {

struct PlanKey {
  int64_t maxBatch, maxTokensQ, maxSeqlenQ, maxSeqlenK;
  int32_t op, dtype, layout, queryHeads, kvHeads, qkDim, vDim, window;
  uint32_t scaleBits;
  uint32_t padding;
  bool operator==(const PlanKey &) const = default;

  // What cannot change a result does not make another key: dense ignores the window, scale 0 is its default.
  static PlanKey make(const Spec &spec, const Maxima &maxima) {
    return {maxima.batch,
            maxima.tokensQ,
            maxima.seqlenQ,
            maxima.seqlenK,
            static_cast<int32_t>(spec.op),
            static_cast<int32_t>(spec.dtype),
            static_cast<int32_t>(spec.layout),
            spec.queryHeads,
            spec.kvHeads,
            spec.qkDim,
            spec.vDim,
            spec.op == Operator::kWindow ? spec.window : 0,
            std::bit_cast<uint32_t>(spec.effectiveScale()),
            0};
  }
};
static_assert(std::has_unique_object_representations_v<PlanKey>, "the bytes are the key");

struct PlanKeyHash {
  size_t operator()(const PlanKey &key) const noexcept {
    return std::hash<Hash128>()(hash128({reinterpret_cast<const char *>(&key), sizeof key}));
  }
};

} // namespace nsa
