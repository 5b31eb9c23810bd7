// Ring<Tile, kStages>: the shared tiles into which a software-pipelined loop loads one operand, one tile per stage.
#pragma once

#include "types.cuh"

namespace nsa {

template <typename Tile, int32 kStages> struct Ring {
  static constexpr int32 kBytes = kStages * Tile::kBytes;

  unsigned char *base;

  NSA_DEVICE explicit Ring(unsigned char *memory) : base(memory) {}

  NSA_DEVICE Tile operator[](int32 stage) const { return Tile(base + stage * Tile::kBytes); }
};

template <int32 kStages> NSA_DEVICE constexpr int32 next_stage(int32 stage) {
  return stage + 1 == kStages ? 0 : stage + 1;
}

// Returns the stage of a ring that the previous iteration read. After the barrier in the loop body, all threads have
// finished reading the previous stage, so the next copy into the ring may overwrite the previous stage.
template <int32 kStages> NSA_DEVICE constexpr int32 previous_stage(int32 stage) {
  return stage == 0 ? kStages - 1 : stage - 1;
}

} // namespace nsa
