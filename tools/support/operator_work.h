// Counts the work of an operator from the shapes, the sequence lengths and the block lists of a call. Only work that
// the operator's definition requires is counted, and not the additional work of a particular kernel. The speeds in
// reports are computed from the counted work.
// Thread-safety: operator_work.h has only pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace nsa::tools {

// Returns the floating point operations of the matrix products that an operator requires. Attention requires two
// products, over exactly the attended pairs (query head, key); a compressed block is one key. The operator select
// requires the scores of the queries that may not attend all of their blocks. The operator compress requires the
// products with the weights of the kinds linear and mlp; the kind mean requires no product. For the operator nsa,
// usefulFlops returns the sum over the operators that nsa consists of. For the operator combine, usefulFlops returns 0.
double usefulFlops(const OperatorInputs &inputs);

// The work of one operator of a call. A call of the operator nsa consists of several operators. `flops` is the number
// of floating point operations that usefulFlops counts for this one operator. `bytes` is the size of all tensors that
// the operator must read or write, each counted once.
struct PartWork {
  Operator part;
  std::string_view name; // roleName
  double flops = 0, bytes = 0;
};
// Returns the work of each operator of a call, in the order in which the operators run. For the operator nsa, the last
// entry of the returned list is the operator combine.
std::vector<PartWork> workByPart(const OperatorInputs &inputs);

// Returns how many queries have more blocks to choose from than they may attend, so that selection leaves some blocks
// out.
int64_t selectingQueries(const OperatorInputs &inputs);
// All queries of all sequences.
int64_t queryCount(const OperatorInputs &inputs);

} // namespace nsa::tools
