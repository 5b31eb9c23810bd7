// RingPlace<kStages>: the position of a producer or consumer in a ring of kStages stages in shared memory. A producer
// fills the stages and consumers empty them. Each stage of a ring has two mbarriers, `empty` and `full`. The producer
// waits for the mbarrier `empty` of a stage before it fills the stage, and consumers wait for the mbarrier `full`
// before they read the stage. A wait for an mbarrier needs the parity of a phase, which depends on the number of
// completed rounds through the ring. No function of barrier_ring.cuh touches memory.
#pragma once

#include "types.cuh"

namespace nsa {

template <uint32 kStages> class RingPlace {
public:
  // before_first() returns the position before stage 0 of the first round: advance() moves it to stage 0.
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

  // Returns the parity of the phase that ends when the stage is full in the current round.
  NSA_DEVICE constexpr int32 full_parity() const {
    return static_cast<int32>(kIsPowerOf2 ? count / kStages % 2 : count < kStages ? 0 : 1);
  }

  // Returns the parity of the phase that ends when the consumers have released the data that the previous round put
  // into the stage. In the first round all stages of the ring are empty: a wait for parity 1 returns at once at a
  // barrier that has not yet completed a phase.
  NSA_DEVICE constexpr int32 empty_parity() const { return full_parity() ^ 1; }

private:
  // If kStages is a power of 2, the stage and the round are bits of `count`, which is never reset.
  static constexpr bool kIsPowerOf2 = (kStages & (kStages - 1)) == 0;

  uint32 count = 0; // modulo 2^32 if kStages is a power of 2, else modulo two rounds; one register
};

} // namespace nsa
