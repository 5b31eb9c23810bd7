// Inputs whose scores are in the thousands, with maxima that lie hundreds apart between the tiles, blocks, splits and
// branches that are put together; and gates with such logits. A softmax that does not subtract its maximum, or
// subtracts that of another part, overflows or vanishes there. Thread-safety: pure functions.
#pragma once

#include "tests/harness/operator_fixture.h"

namespace nsa::test {

// How the scores of the parts may follow each other: all large, all negative, rising, falling, mixed.
constexpr size_t kLevels = 5;

// Of a dense call. `part` neighbouring keys have scores of one size. Each branch of several takes another of the
// levels.
void setLargeScores(OperatorInputs &inputs, size_t levels, int64_t part);

// The contract's limits, but that fp32 knows such a score, and so the logarithm of its weight, only to some units of
// its own last place.
void expectRightScores(const OperatorInputs &inputs, const NamedTensors &outputs);

// All three of a row's logits large, or one that leaves the others nothing, in turns.
void setLargeLogits(OperatorInputs &inputs);

} // namespace nsa::test
