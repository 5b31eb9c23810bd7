// Counts the work of an operator by its shapes, lengths and lists. Work that a kernel does in addition to the
// operator's own work is not counted. The speeds in reports are computed from the counted work.
// Thread-safety: operator_work.h has only pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// The number of pairs (query head, key) that are attended, in all sequences together. A compressed block is counted as
// one key. For nsa the number of pairs is the sum over the branches that are on, and for compress and combine it is 0.
int64_t attendedPairs(const OperatorInputs &inputs);

// The floating point operations of the matrix products over exactly the attended pairs. Attention has two products.
// For the operator select they are the operations of the scores, and only of queries that may not attend all of their
// blocks. For the operator compress they are the products with the weights of the kinds linear and mlp; the kind mean
// has 0. For nsa they are the sum over its operators, and for combine they are 0.
double usefulFlops(const OperatorInputs &inputs);

// The work of one operator that is part of nsa, or of the operator itself: its part of usefulFlops, and the bytes of
// all tensors that it must read and write, each counted once.
struct PartWork {
  Operator part;
  double flops = 0, bytes = 0;
};
// Returns the work of each operator, in the order in which the operators run. For nsa they include combine.
std::vector<PartWork> workByPart(const OperatorInputs &inputs);

// Returns how many queries have more blocks to choose from than they may attend, so that selection leaves some blocks
// out.
int64_t selectingQueries(const OperatorInputs &inputs);
// All queries of all sequences.
int64_t queryCount(const OperatorInputs &inputs);

} // namespace nsa::tools
