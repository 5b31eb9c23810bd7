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

CombinationGradient differentiate(const Combination &c, std::span<const double> dOut) {
  const int64_t gateHeads = c.spec.gatePerGroup ? c.spec.kvHeads : c.spec.queryHeads;
  const int64_t headsOfGate = c.spec.queryHeads / gateHeads;
  CombinationGradient gradient;
  gradient.gates.assign(static_cast<size_t>(rowEnd(c.sequences) * gateHeads) * kBranchCount, 0.0);
  for (size_t branch = 0; branch < kBranchCount; ++branch)
    if (c.spec.hasBranch(1 << branch))
      gradient.branches[branch].assign(dOut.size(), 0.0);
  for (const Sequence &sequence : c.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < c.spec.queryHeads; ++head) {
        const std::array<double, kBranchCount> gates = gatesOf(c, sequence, query, head);
        const int64_t row = (sequence.firstRow + query) * c.spec.queryHeads + head;
        std::array<double, kBranchCount> delta{};
        double weighted = 0;
        for (size_t branch = 0; branch < kBranchCount; ++branch) {
          if (!c.spec.hasBranch(1 << branch))
            continue;
          for (int64_t i = row * c.spec.vDim; i < (row + 1) * c.spec.vDim; ++i) {
            delta[branch] += dOut[i] * c.branches[branch][i];
            gradient.branches[branch][i] = gates[branch] * dOut[i];
          }
          weighted += gates[branch] * delta[branch];
        }
        // 1 minus the sigmoid, which would cancel where the sigmoid is nearly 1.
        const auto others = [&](size_t branch) {
          return 1 / (1 + std::exp(c.gates.at(sequence.batch, sequence.queryBegin + query, head / headsOfGate,
                                              static_cast<int64_t>(branch))));
        };
        double *ofGates =
            &gradient.gates[((sequence.firstRow + query) * gateHeads + head / headsOfGate) * kBranchCount];
        for (size_t branch = 0; branch < kBranchCount; ++branch)
          if (c.spec.gate == Gate::kSoftmax || c.spec.hasBranch(1 << branch)) // others are not read
            ofGates[branch] += c.spec.gate == Gate::kSoftmax   ? gates[branch] * (delta[branch] - weighted)
                               : c.spec.gate == Gate::kSigmoid ? gates[branch] * others(branch) * delta[branch]
                                                               : delta[branch];
      }
  return gradient;
}

} // namespace nsa::reference
