// RingPlace<kStages>: where a role stands in a ring of shared-memory stages that a producer fills and consumers empty.
// Each stage has two mbarriers: the producer waits for `empty`, consumers for `full`, each for the parity of its round.
// Nothing here touches memory.
#pragma once

#include "types.cuh"

namespace nsa {

template <uint32 kStages> class RingPlace {
public:
  // The place whose next one is the first.
  NSA_DEVICE static constexpr RingPlace before_first() {
    RingPlace result;
    result.count = 2 * kStages - 1;
    return result;
  }

  NSA_DEVICE constexpr int32 stage() const {
    return static_cast<int32>(kIsPowerOf2 ? count % kStages : count < kStages ? count : count - kStages);
  }

  NSA_DEVICE constexpr void advance() { count = !kIsPowerOf2 && count + 1 == 2 * kStages ? 0 : count + 1; }

  NSA_DEVICE constexpr RingPlace next() const {
    RingPlace result = *this;
    result.advance();
    return result;
  }

  // The phase that ends when the stage is full, in this round.
  NSA_DEVICE constexpr int32 full_parity() const {
    return static_cast<int32>(kIsPowerOf2 ? count / kStages % 2 : count < kStages ? 0 : 1);
  }

  // The phase that ends when consumers have left the stage since the round before. All stages begin empty: a barrier
  // that never changed its phase counts as past the one of parity 1.
  NSA_DEVICE constexpr int32 empty_parity() const { return full_parity() ^ 1; }

private:
  // Then stage and round are bits of a count that never turns back.
  static constexpr bool kIsPowerOf2 = (kStages & (kStages - 1)) == 0;

  uint32 count = 0; // modulo 2^32, else modulo two rounds: one register
};

} // namespace nsa
