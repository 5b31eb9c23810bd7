// Counts the work of an operator from the shapes, the sequence lengths and the block lists of a call. Only work that
// the operator's definition requires is counted, and not the additional work of a particular kernel. The speeds in
// reports are computed from the counted work.
// Thread-safety: operator_work.h has only pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// Returns the number of attended pairs (query head, key) in all sequences together. A compressed block is counted as
// one key. The number for the operator nsa is the sum over its enabled branches. The number for the operators compress
// and combine is 0.
int64_t attendedPairs(const OperatorInputs &inputs);

// Returns the floating point operations of the matrix products that an operator requires. Attention requires two
// products, over exactly the attended pairs. The operator select requires the scores of the queries that may not attend
// all of their blocks. The operator compress requires the products with the weights of the kinds linear and mlp; the
// kind mean requires no product. The result for the operator nsa is the sum over its operators. For the operator
// combine, usefulFlops returns 0.
double usefulFlops(const OperatorInputs &inputs);

// The work of one operator, which may be a part of the operator nsa. `flops` is the operator's share of usefulFlops.
// `bytes` is the size of all tensors that the operator must read or write, each counted once.
struct PartWork {
  Operator part;
  double flops = 0, bytes = 0;
};
// Returns the work of each operator, in the order in which the operators run. For the operator nsa, the list includes
// combine.
std::vector<PartWork> workByPart(const OperatorInputs &inputs);

// Returns how many queries have more blocks to choose from than they may attend, so that selection leaves some blocks
// out.
int64_t selectingQueries(const OperatorInputs &inputs);
// All queries of all sequences.
int64_t queryCount(const OperatorInputs &inputs);

} // namespace nsa::tools
