// An operator as plain C++ loops over its rows, which the C++ compiler vectorizes. The speed of a generated CPU kernel
// is compared with the speed of the plain loop. The kernel and the plain loop run in turns, so a machine that is slow
// at the moment is slow for both.
// Ownership: a PlainLoop borrows its inputs.
// Thread-safety: only one thread at a time may use a PlainLoop.
#pragma once

#include "tools/reference/attention.h"
#include "tools/support/operator_job.h"

namespace nsa::bench {

class PlainLoop {
public:
  // There are plain loops for the operators dense, window, cmp, sel, combine, and compress by the mean, in fp32, for
  // one sequence with contiguous tensors. A PlainLoop needs head sizes that are multiples of 32. `lanes` is the number
  // of floats in a vector register that the loop uses, 16 or 8; the processor must have such registers.
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
