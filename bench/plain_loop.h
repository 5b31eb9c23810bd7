// An operator as plain loops over its rows, with the vectors that the C++ compiler makes of them. The speed of a
// generated CPU kernel is compared with the speed of the plain loop. The kernel and the plain loop run in turns, so a
// machine that is slow at the moment is slow for both.
// Ownership: a PlainLoop borrows its inputs.
// Thread-safety: one thread uses a PlainLoop.
#pragma once

#include "tests/reference/attention.h"
#include "tools/support/operator_job.h"

namespace nsa::bench {

class PlainLoop {
public:
  // A plain loop serves dense, window, cmp, sel, combine, and compress by the mean, in fp32, for one sequence with
  // contiguous tensors. The head sizes of a plain loop must be multiples of 32. `lanes` is the number of floats of a
  // vector, 16 or 8, and the processor must have such vectors.
  PlainLoop(const tools::OperatorInputs &inputs, int lanes);

  void run();
  // Returns the required outputs of the operator, as the last run computed them.
  const tools::NamedTensors &result() const { return outputs; }

private:
  void prepareAttention();

  const tools::OperatorInputs &inputs;
  int lanes;
  std::vector<std::vector<reference::KeyRange>> allowed; // for each query and kv head; used for attention only
  std::vector<float> weights;                            // of the keys of one row
  tools::NamedTensors outputs;
};

} // namespace nsa::bench
