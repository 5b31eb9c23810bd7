#include "tools/reference/gradient/nsa_gradient.h"

#include "tools/reference/elements.h"
#include "tools/reference/parallel.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace nsa::reference {

namespace {

// The gradients of the compressed rows of K or V, where the rows are, rounded to fp32.
OwnedTensor placeRows(const Nsa &n, const std::vector<KeyGradient> &gradients, std::vector<double> KeyGradient::*rows,
                      int64_t columns) {
  int64_t batches = 0, times = 0;
  for (const Sequence &sequence : n.sequences) {
    batches = std::max(batches, sequence.keyBatch + 1);
    times = std::max(times, sequence.blockBegin + n.spec.compressedBlocks(sequence.keys));
  }
  OwnedTensor placed = OwnedTensor::make(DType::kF32, batches, times, n.spec.kvHeads, columns);
  const TensorView view = placed.view();
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::vector<double> &own = gradients[i].*rows;
    const int64_t begin = view.offset(n.sequences[i].keyBatch, n.sequences[i].blockBegin, 0, 0);
    for (size_t element = 0; element < own.size(); ++element)
      storeElement(DType::kF32, placed.bytes.data(), begin + static_cast<int64_t>(element), own[element]);
  }
  return placed;
}

CombinationGradient gatedGradient(const Nsa &n, const NsaResult &result, std::span<const double> dOut) {
  Combination combination{.spec = n.spec, .gates = n.gates, .sequences = result.sequences};
  for (size_t i = 0; i < kBranchCount; ++i)
    combination.branches[i] = result.branches[i].out;
  return differentiate(combination, dOut);
}

// What the compressed blocks of a token send back to it. `attention` is that of the branch cmp.
class TokenOfBlocks {
public:
  TokenOfBlocks(const Nsa &nsa, const Attention &attention)
      : n(nsa), attention(attention), phiK(n.spec, n.phiK, n.spec.qkDim), phiV(n.spec, n.phiV, n.spec.vDim) {}

  // [1, kv_heads, columns]
  KeyGradient differentiate(const Sequence &sequence, int64_t token, const SavedRows &saved,
                            const std::vector<double> &dOut) const {
    const int64_t heads = n.spec.kvHeads, stride = n.spec.cmpStride, length = n.spec.cmpBlock;
    KeyGradient own{.k = std::vector(static_cast<size_t>(heads * n.spec.qkDim), 0.0),
                    .v = std::vector(static_cast<size_t>(heads * n.spec.vDim), 0.0),
                    .attended = std::vector(static_cast<size_t>(heads), false),
                    .kTerms = {}};
    const int64_t first = token < length ? 0 : (token - length) / stride + 1;
    const int64_t end = std::min(token / stride + 1, n.spec.compressedBlocks(sequence.keys));
    for (int64_t block = first; block < end; ++block) {
      const KeyGradient row = differentiateKey(attention, sequence, block, saved, dOut);
      for (int64_t head = 0; head < heads; ++head) {
        add(phiK, n.kCmp, sequence, token, block, head, row.k, n.spec.qkDim, own.k);
        add(phiV, n.vCmp, sequence, token, block, head, row.v, n.spec.vDim, own.v);
        own.attended[head] = true;
      }
    }
    return own;
  }

private:
  void add(const PhiFunction &phi, const TensorView &raw, const Sequence &sequence, int64_t token, int64_t block,
           int64_t head, std::span<const double> dRows, int64_t columns, std::vector<double> &sum) const {
    std::vector<double> tokens(static_cast<size_t>(n.spec.cmpBlock * columns));
    const int64_t begin = block * n.spec.cmpStride;
    for (int64_t i = 0; i < n.spec.cmpBlock; ++i)
      raw.read(sequence.keyBatch, sequence.keyBegin + begin + i, head, std::span(tokens).subspan(i * columns, columns));
    PhiGradient ofWeights = phi.zeroGradient();
    const std::vector<double> dTokens = phi.differentiate(tokens, dRows.subspan(head * columns, columns), ofWeights);
    for (int64_t column = 0; column < columns; ++column)
      sum[head * columns + column] += dTokens[(token - begin) * columns + column];
  }

  const Nsa &n;
  const Attention &attention;
  const PhiFunction phiK, phiV;
};

void append(KeyGradient &all, const KeyGradient &more) {
  all.k.insert(all.k.end(), more.k.begin(), more.k.end());
  all.v.insert(all.v.end(), more.v.begin(), more.v.end());
  all.attended.insert(all.attended.end(), more.attended.begin(), more.attended.end());
  all.kTerms.insert(all.kTerms.end(), more.kTerms.begin(), more.kTerms.end());
}

} // namespace

NsaGradient differentiate(const Nsa &n, const NsaResult &result, std::span<const double> dOut) {
  assert(n.rows.empty());
  CombinationGradient gated = gatedGradient(n, result, dOut);
  NsaGradient gradient{.gates = std::move(gated.gates)};
  for (size_t i = 0; i < kBranchCount; ++i)
    if (n.spec.hasBranch(1 << i))
      gradient.branches[i] = differentiate(attentionOf(n, result, i), result.branches[i], gated.branches[i]);
  if (n.spec.hasBranch(kBranchCmp)) {
    const std::vector<KeyGradient> &keys = gradient.branches[0].keys;
    const OwnedTensor dK = placeRows(n, keys, &KeyGradient::k, n.spec.qkDim);
    const OwnedTensor dV = placeRows(n, keys, &KeyGradient::v, n.spec.vDim);
    gradient.compression = differentiate(
        {.spec = n.spec, .k = n.kCmp, .v = n.vCmp, .phiK = n.phiK, .phiV = n.phiV, .sequences = n.sequences}, dK.view(),
        dV.view());
  }
  return gradient;
}

NsaGradient differentiateQueries(const Nsa &n, const NsaResult &result, std::span<const double> dOut) {
  CombinationGradient gated = gatedGradient(n, result, dOut);
  NsaGradient gradient{.gates = std::move(gated.gates)};
  for (size_t i = 0; i < kBranchCount; ++i)
    if (n.spec.hasBranch(1 << i))
      gradient.branches[i] = differentiateQueries(attentionOf(n, result, i), result.branches[i], gated.branches[i]);
  return gradient;
}

std::array<KeyGradient, kBranchCount> differentiateTokens(const Nsa &n, const NsaResult &result,
                                                          std::span<const double> dOut, const Sequence &sequence,
                                                          std::span<const int64_t> tokens) {
  const Combination combination{.spec = n.spec, .gates = n.gates, .branches = {}, .sequences = result.sequences};
  const int64_t heads = n.spec.queryHeads, columns = n.spec.vDim;
  std::array<KeyGradient, kBranchCount> gradients;
  std::vector<double> dBranch(dOut.size()); // one branch after the other: a long sequence has gigabytes of it
  for (size_t branch = 0; branch < kBranchCount; ++branch) {
    if (!n.spec.hasBranch(1 << branch))
      continue;
    const AttentionResult &forward = result.branches[branch];
    SavedRows saved{.lse = forward.lse, .delta = std::vector(forward.lse.size(), 0.0)};
    forEachQuery(result.sequences, /*threads=*/0, [&](const Sequence &own, int64_t query) {
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t row = (own.firstRow + query) * heads + head;
        const double gate = gatesOf(combination, own, query, head)[branch];
        for (int64_t i = row * columns; i < (row + 1) * columns; ++i)
          dBranch[i] = gate * dOut[i];
        saved.delta[row] = dot(&forward.out[row * columns], &dBranch[row * columns], columns);
      }
    });
    const Attention attention = attentionOf(n, result, branch);
    const std::optional<TokenOfBlocks> ofBlocks =
        branch == 0 ? std::optional<TokenOfBlocks>(std::in_place, n, attention) : std::nullopt;
    std::vector<KeyGradient> single(tokens.size());
    forEachIndex(static_cast<int64_t>(tokens.size()), /*threads=*/0, /*least=*/1, [&](int64_t i) {
      single[i] = ofBlocks ? ofBlocks->differentiate(sequence, tokens[i], saved, dBranch)
                           : differentiateKey(attention, sequence, tokens[i], saved, dBranch);
    });
    for (const KeyGradient &token : single)
      append(gradients[branch], token);
  }
  return gradients;
}

} // namespace nsa::reference
