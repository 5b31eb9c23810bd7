// Inputs whose scores are in the thousands. The maxima of tiles, blocks, splits and branches, which kernels merge, are
// hundreds apart; gates get such logits too. A softmax that does not subtract its maximum, or that subtracts the
// maximum of another part, overflows or underflows there.
// Thread-safety: pure functions.
#pragma once

#include "tests/harness/operator_fixture.h"

namespace nsa::test {

// How many patterns of scores over the parts there are: all large, all negative, rising, falling, mixed.
constexpr size_t kLevels = 5;

// Sets the scores of a dense call. `part` neighbouring keys have scores of one size. Where there are several branches,
// each takes another one of the patterns.
void setLargeScores(OperatorInputs &inputs, size_t levels, int64_t part);

// Compares with the specification's limits, widened where fp32 cannot hold a large score exactly: the score, and so the
// logarithm of its weight, may be off by some units in its last place.
void expectRightScores(const OperatorInputs &inputs, const NamedTensors &outputs);

// Makes all three logits of a row large, or one so large that the others get no weight, in turns.
void setLargeLogits(OperatorInputs &inputs);

// Sets logits whose gates are near 1: 1 minus such a gate has few digits in fp32. A softmax has one of them.
void setSaturatedLogits(OperatorInputs &inputs);

} // namespace nsa::test
