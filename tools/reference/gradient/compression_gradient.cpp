#include "tools/reference/gradient/compression_gradient.h"

namespace nsa::reference {
namespace {

// Calls `visit` with the number, block and head of each block of a sequence, and with the block's tokens.
template <class Visit>
void forEachBlock(const Compression &c, const TensorView &raw, int64_t columns, const Visit &visit) {
  std::vector<double> tokens(static_cast<size_t>(c.spec.cmpBlock * columns));
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    const Sequence &sequence = c.sequences[s];
    for (int64_t block = 0; block < c.spec.compressedBlocks(sequence.keys); ++block)
      for (int64_t head = 0; head < c.spec.kvHeads; ++head) {
        for (int64_t i = 0; i < c.spec.cmpBlock; ++i)
          raw.read(sequence.keyBatch, sequence.keyBegin + block * c.spec.cmpStride + i, head,
                   std::span(tokens).subspan(i * columns, columns));
        visit(s, block, head, tokens);
      }
  }
}

CompressedGradient differentiateOne(const Compression &c, const TensorView &raw, const TensorView &dRows,
                                    const Phi &phi, int64_t columns) {
  const Spec &spec = c.spec;
  const std::vector<Sequence> keys = keyRows(c.sequences);
  const int64_t heads = spec.kvHeads, places = rowEnd(keys) * heads;
  const PhiFunction function(spec, phi, columns);
  CompressedGradient result{.tokens = std::vector<double>(static_cast<size_t>(places * columns)),
                            .covered = std::vector<bool>(static_cast<size_t>(places)),
                            .phi = function.zeroGradient()};
  std::vector<double> dRow(static_cast<size_t>(columns));
  forEachBlock(c, raw, columns, [&](size_t s, int64_t block, int64_t head, std::span<const double> tokens) {
    dRows.read(c.sequences[s].keyBatch, c.sequences[s].blockBegin + block, head, dRow);
    const std::vector<double> dTokens = function.differentiate(tokens, dRow, result.phi);
    for (int64_t i = 0; i < spec.cmpBlock; ++i) {
      const int64_t place = (keys[s].firstRow + block * spec.cmpStride + i) * heads + head;
      result.covered[place] = true;
      for (int64_t column = 0; column < columns; ++column)
        result.tokens[place * columns + column] += dTokens[i * columns + column];
    }
  });
  return result;
}

std::set<int64_t> findNearKinkOf(const Compression &c, const TensorView &raw, const Phi &phi, int64_t columns) {
  const PhiFunction function(c.spec, phi, columns);
  std::set<int64_t> hidden;
  forEachBlock(c, raw, columns, [&](size_t, int64_t, int64_t, std::span<const double> tokens) {
    function.findNearKink(tokens, hidden);
  });
  return hidden;
}

} // namespace

CompressionGradient differentiate(const Compression &c, const TensorView &dK, const TensorView &dV) {
  return {.k = differentiateOne(c, c.k, dK, c.phiK, c.spec.qkDim),
          .v = differentiateOne(c, c.v, dV, c.phiV, c.spec.vDim)};
}

NearKink findNearKink(const Compression &c) {
  if (c.spec.cmpKind != CmpKind::kMlp || c.spec.mlpActivation != Activation::kRelu)
    return {};
  return {.k = findNearKinkOf(c, c.k, c.phiK, c.spec.qkDim), .v = findNearKinkOf(c, c.v, c.phiV, c.spec.vDim)};
}

} // namespace nsa::reference
