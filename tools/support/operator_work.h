// How much an operator has to do by its shapes, lengths and lists, whatever a kernel does on top: what speeds are
// counted from. Thread-safety: pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// (query head, key) pairs that are attended, all sequences together; a compressed block is a key. Of nsa, those of the
// branches that are on. Nothing for compress and combine.
int64_t attendedPairs(const OperatorInputs &inputs);

// Floating point operations of the matrix products over exactly that: both products of attention, the scores alone for
// select, of the queries that leave blocks out, the weights' of linear and mlp compression. Of nsa, the sum of its
// operators'; 0 for combine.
double usefulFlops(const OperatorInputs &inputs);

// One operator of nsa, or the operator itself: its share of usefulFlops, and the bytes of everything that it must read
// and write, each once.
struct PartWork {
  Operator part;
  double flops = 0, bytes = 0;
};
// In the order in which they run; of nsa with combine.
std::vector<PartWork> workByPart(const OperatorInputs &inputs);

// Queries with more blocks to choose from than they may attend, so that selection leaves something out.
int64_t selectingQueries(const OperatorInputs &inputs);
// All queries of all sequences.
int64_t queryCount(const OperatorInputs &inputs);

} // namespace nsa::tools
