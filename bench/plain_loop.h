// An operator as plain loops over its rows, with the vectors that the compiler makes of them: what the speed of the
// generated CPU kernels is watched against. Both run in turns, so a machine that is slow at that moment is slow for
// both. Ownership: borrows the inputs. Thread-safety: one thread.
#pragma once

#include "tests/reference/attention.h"
#include "tools/support/operator_job.h"

namespace nsa::bench {

class PlainLoop {
public:
  // Of dense, window, cmp, sel, combine or compress by the mean, in fp32, with heads of a multiple of 32, of one
  // sequence whose tensors are contiguous. `lanes`: floats of a vector, 16 or 8, which the processor must have.
  PlainLoop(const tools::OperatorInputs &inputs, int lanes);

  void run();
  // What the last run has computed: the operator's required outputs.
  const tools::NamedTensors &result() const { return outputs; }

private:
  void prepareAttention();

  const tools::OperatorInputs &inputs;
  int lanes;
  std::vector<std::vector<reference::KeyRange>> allowed; // of each query and kv head; attention alone
  std::vector<float> weights;                            // of one row's keys
  tools::NamedTensors outputs;
};

} // namespace nsa::bench
