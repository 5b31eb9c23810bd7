#include "tools/reference/brute_force.h"

#include <cassert>
#include <cmath>
#include <complex>

namespace nsa::reference {

std::vector<double> combineByMask(const Combination &c) {
  std::vector<double> out;
  for (const Sequence &sequence : c.sequences) {
    for (int64_t time = sequence.queryBegin; time < sequence.queryBegin + sequence.queries; ++time) {
      for (int64_t head = 0; head < c.spec.queryHeads; ++head) {
        const int64_t gateHead = c.spec.gatePerGroup ? head * c.spec.kvHeads / c.spec.queryHeads : head;
        long double exponentials = 0;
        for (int64_t branch = 0; branch < 3; ++branch)
          exponentials += std::exp(static_cast<long double>(c.gates.at(sequence.batch, time, gateHead, branch)));
        for (int64_t column = 0; column < c.spec.vDim; ++column) {
          const size_t element = out.size();
          long double sum = 0;
          for (int branch = 0; branch < 3; ++branch) {
            if ((c.spec.branches >> branch) % 2 == 0)
              continue;
            const long double logit = c.gates.at(sequence.batch, time, gateHead, branch);
            const long double gate = c.spec.gate == Gate::kValue     ? logit
                                     : c.spec.gate == Gate::kSoftmax ? std::exp(logit) / exponentials
                                                                     : (std::tanh(logit / 2) + 1) / 2;
            sum += gate * c.branches[static_cast<size_t>(branch)][element];
          }
          out.push_back(static_cast<double>(sum));
        }
      }
    }
  }
  return out;
}

std::vector<double> rotateByMatrix(const Rotation &r) {
  using Complex = std::complex<long double>;
  const auto dim = static_cast<size_t>(r.spec.qkDim), turning = static_cast<size_t>(r.spec.turningDims());
  std::vector<double> out;
  for (const Sequence &sequence : r.sequences) {
    long double position = static_cast<long double>(sequence.keys - sequence.queries);
    for (int64_t time = sequence.queryBegin; time < sequence.queryBegin + sequence.queries; ++time, ++position) {
      std::vector<std::vector<long double>> matrix(dim, std::vector<long double>(dim, 0));
      for (size_t i = 0; i < dim; ++i)
        matrix[i][i] = 1;
      // The frequency of a pair is the one before it divided by base^(2 / turning).
      const long double ratio = std::pow(static_cast<long double>(r.spec.rotaryBase), -2.0L / turning);
      long double frequency = 1;
      for (size_t pair = 0; 2 * pair < turning; ++pair, frequency *= ratio) {
        Complex turn = std::polar(1.0L, position * frequency);
        if (r.cos.isGiven())
          turn = {r.cos.at(0, static_cast<int64_t>(position), 0, static_cast<int64_t>(pair)),
                  r.sin.at(0, static_cast<int64_t>(position), 0, static_cast<int64_t>(pair))};
        if (r.spec.op == Operator::kRotateBwd)
          turn = std::conj(turn);
        const bool neighbours = r.spec.rotaryStyle == RotaryStyle::kInterleaved;
        const size_t real = neighbours ? pair + pair : pair, imaginary = neighbours ? real + 1 : real + turning / 2;
        matrix[real][real] = matrix[imaginary][imaginary] = turn.real();
        matrix[real][imaginary] = -turn.imag();
        matrix[imaginary][real] = turn.imag();
      }
      for (int64_t head = 0; head < r.spec.kvHeads; ++head)
        for (size_t column = 0; column < dim; ++column) {
          long double sum = 0;
          for (size_t inner = 0; inner < dim; ++inner)
            sum += matrix[column][inner] * r.x.at(sequence.batch, time, head, static_cast<int64_t>(inner));
          out.push_back(static_cast<double>(sum));
        }
    }
  }
  return out;
}

NsaResult forwardByMask(const Nsa &n) {
  assert(n.rows.empty());
  NsaResult result;
  result.sequences = n.sequences;
  const TensorView qCmp = n.qCmp.isGiven() ? n.qCmp : n.q;
  TensorView kComp = n.kComp, vComp = n.vComp;
  if (!kComp.isGiven()) {
    result.compressed = compressByMask({n.spec, n.kCmp, n.vCmp, n.phiK, n.phiV, n.sequences});
    kComp = result.compressed.k.view();
    vComp = result.compressed.v.view();
  }
  if (n.blockLists.isGiven()) {
    result.blockLists = {.kvHeads = n.spec.kvHeads, .slots = n.spec.selCount};
    for (const Sequence &sequence : n.sequences)
      for (int64_t time = sequence.queryBegin; time < sequence.queryBegin + sequence.queries; ++time)
        for (int64_t head = 0; head < n.spec.kvHeads; ++head)
          for (int64_t slot = 0; slot < n.spec.selCount; ++slot)
            result.blockLists.blocks.push_back(
                n.blockLists.data[sequence.batch * n.blockLists.batchStride + time * n.blockLists.timeStride +
                                  head * n.blockLists.headStride + slot * n.blockLists.slotStride]);
  } else if (n.spec.branches / 2 % 2 != 0) {
    result.blockLists = selectByMask({n.spec, qCmp, kComp, n.sequences});
  }

  Spec spec = n.spec;
  const std::vector<bool> on = {spec.branches % 2 != 0, spec.branches / 2 % 2 != 0, spec.branches / 4 % 2 != 0};
  spec.op = Operator::kCmp;
  if (on[0])
    result.branches[0] = attendByMask({spec, qCmp, kComp, vComp, {}, n.sequences});
  spec.op = Operator::kSel;
  if (on[1])
    result.branches[1] = attendByMask({spec, n.q, n.kSel, n.vSel, result.blockLists, n.sequences});
  spec.op = Operator::kWindow;
  if (on[2])
    result.branches[2] = attendByMask({spec, n.q, n.kWin, n.vWin, {}, n.sequences});

  Combination combination{n.spec, n.gates, {}, n.sequences};
  for (size_t branch = 0; branch < 3; ++branch) {
    combination.branches[branch] = result.branches[branch].out;
    if (on[branch])
      result.reads.resize(result.branches[branch].reads.size(), 0);
    for (size_t i = 0; i < result.branches[branch].reads.size(); ++i)
      result.reads[i] += result.branches[branch].reads[i];
  }
  result.out = combineByMask(combination);
  return result;
}

} // namespace nsa::reference
