#include "tools/reference/gradient/compression_gradient.h"

namespace nsa::reference {
namespace {

CompressedGradient differentiateOne(const Compression &c, const TensorView &raw, const TensorView &dRows,
                                    const Phi &phi, int64_t columns) {
  const Spec &spec = c.spec;
  const std::vector<Sequence> keys = keyRows(c.sequences);
  const int64_t heads = spec.kvHeads, places = rowEnd(keys) * heads;
  const PhiFunction function(spec, phi, columns);
  CompressedGradient result{.tokens = std::vector<double>(static_cast<size_t>(places * columns)),
                            .covered = std::vector<bool>(static_cast<size_t>(places)),
                            .phi = function.zeroGradient()};
  std::vector<double> tokens(static_cast<size_t>(spec.cmpBlock * columns)), dRow(static_cast<size_t>(columns));
  for (size_t s = 0; s < keys.size(); ++s) {
    const Sequence &sequence = c.sequences[s];
    for (int64_t block = 0; block < spec.compressedBlocks(sequence.keys); ++block)
      for (int64_t head = 0; head < heads; ++head) {
        for (int64_t i = 0; i < spec.cmpBlock; ++i)
          raw.read(sequence.keyBatch, sequence.keyBegin + block * spec.cmpStride + i, head,
                   std::span(tokens).subspan(i * columns, columns));
        dRows.read(sequence.keyBatch, sequence.blockBegin + block, head, dRow);
        const std::vector<double> dTokens = function.differentiate(tokens, dRow, result.phi);
        for (int64_t i = 0; i < spec.cmpBlock; ++i) {
          const int64_t place = (keys[s].firstRow + block * spec.cmpStride + i) * heads + head;
          result.covered[place] = true;
          for (int64_t column = 0; column < columns; ++column)
            result.tokens[place * columns + column] += dTokens[i * columns + column];
        }
      }
  }
  return result;
}

} // namespace

CompressionGradient differentiate(const Compression &c, const TensorView &dK, const TensorView &dV) {
  return {.k = differentiateOne(c, c.k, dK, c.phiK, c.spec.qkDim),
          .v = differentiateOne(c, c.v, dV, c.phiV, c.spec.vDim)};
}

} // namespace nsa::reference
