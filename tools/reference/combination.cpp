#include "tools/reference/combination.h"

#include "tools/reference/softmax.h"

#include <cmath>

namespace nsa::reference {

std::array<double, kBranchCount> gatesOf(const Combination &c, const Sequence &sequence, int64_t query, int64_t head) {
  const int64_t gateHead = c.spec.gatePerGroup ? head / (c.spec.queryHeads / c.spec.kvHeads) : head;
  std::vector<double> gates;
  for (size_t branch = 0; branch < kBranchCount; ++branch)
    gates.push_back(c.gates.at(sequence.batch, sequence.queryBegin + query, gateHead, static_cast<int64_t>(branch)));
  if (c.spec.gate == Gate::kSigmoid)
    for (double &gate : gates)
      gate = 1 / (1 + std::exp(-gate));
  if (c.spec.gate == Gate::kSoftmax)
    softmax(gates);
  return {gates[0], gates[1], gates[2]};
}

std::vector<double> combine(const Combination &c) {
  std::vector<double> out(static_cast<size_t>(rowEnd(c.sequences) * c.spec.queryHeads * c.spec.vDim), 0.0);
  for (const Sequence &sequence : c.sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query) {
      for (int64_t head = 0; head < c.spec.queryHeads; ++head) {
        const std::array<double, kBranchCount> gates = gatesOf(c, sequence, query, head);
        const int64_t row = (sequence.firstRow + query) * c.spec.queryHeads + head;
        for (size_t branch = 0; branch < kBranchCount; ++branch) {
          if (!c.spec.hasBranch(1 << branch))
            continue;
          for (int64_t i = row * c.spec.vDim; i < (row + 1) * c.spec.vDim; ++i)
            out[i] += gates[branch] * c.branches[branch][i];
        }
      }
    }
  }
  return out;
}

} // namespace nsa::reference
