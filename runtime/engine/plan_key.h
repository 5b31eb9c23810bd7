// The key of the plan map: a problem (runtime/base/problem.h) as a plain struct of numbers, so that planning from
// memory composes no text. Requests that differ only within one bucket have one key, as they have one stored choice.
// Two requests have equal keys exactly when Problem::key() gives them equal texts.
#pragma once

#include "runtime/base/problem.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace nsa {

struct PlanKey {
  uint8_t op, dtype, layout;
  uint8_t batchBits, kvHeadsBits, seqlenQBits, seqlenKBits, windowBits; // logarithms of the buckets
  int32_t group, qkDim, vDim;
  uint32_t padding;
  bool operator==(const PlanKey &) const = default;

  // Both arguments have passed validate().
  static PlanKey make(const Spec &spec, const Maxima &maxima) {
    bool window = spec.op == Operator::kWindow;
    return {static_cast<uint8_t>(spec.op),
            static_cast<uint8_t>(spec.dtype),
            static_cast<uint8_t>(spec.layout),
            bits(maxima.batch),
            bits(spec.kvHeads),
            bits(maxima.seqlenQ),
            bits(maxima.seqlenK),
            window ? bits(std::min<int64_t>(spec.window, maxima.seqlenK)) : uint8_t{0},
            spec.group(),
            spec.qkDim,
            spec.vDim,
            0};
  }

  size_t hash() const {
    // Multiply and fold: the middle bits of each product depend on every bit of both words.
    auto fold = [](uint64_t a, uint64_t b) {
      auto product = static_cast<unsigned __int128>(a) * b;
      return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    };
    auto words = std::bit_cast<std::array<uint64_t, 3>>(*this);
    return fold(fold(words[0] ^ 0x9e3779b97f4a7c15, words[1] ^ 0xd1b54a32d192ed03) ^ words[2], 0xa0761d6478bd642f);
  }

private:
  static uint8_t bits(int64_t value) {
    return value <= 1 ? uint8_t{0} : static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(value - 1)));
  }
};
static_assert(std::has_unique_object_representations_v<PlanKey>, "the bytes are the key");

} // namespace nsa
