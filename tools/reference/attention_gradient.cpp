#include "tools/reference/attention_gradient.h"

#include <cmath>

namespace nsa::reference {

namespace {

std::vector<double> readRow(const TensorView &view, int64_t batch, int64_t time, int64_t head, int64_t columns) {
  std::vector<double> row(static_cast<size_t>(columns));
  view.read(batch, time, head, row);
  return row;
}

void addScaled(double *sum, double factor, const double *row, int64_t columns) {
  for (int64_t column = 0; column < columns; ++column)
    sum[column] += factor * row[column];
}

// What one query of one head adds.
class QueryGradient {
public:
  QueryGradient(const Attention &attention, const Sequence &sequence, int64_t query, int64_t head)
      : a(attention), sequence(sequence), query(query), head(head), kvHead(head / a.spec.group()),
        row((sequence.firstRow + query) * a.spec.queryHeads + head) {}

  void add(const AttentionResult &result, const std::vector<double> &dOut, AttentionGradient &gradient,
           KeyGradient &keys) const {
    const double scale = softmaxScale(a.spec);
    const double *out = &result.out[row * a.spec.vDim], *dRow = &dOut[row * a.spec.vDim];
    const std::vector<double> q = readRow(a.q, sequence.batch, sequence.queryBegin + query, head, a.spec.qkDim);
    double &delta = gradient.delta[row];
    delta = dot(out, dRow, a.spec.vDim);
    const int64_t begin = definitionOf(a.spec.op).keys == MetKeys::kBlocks ? sequence.blockBegin : sequence.keyBegin;
    for (const KeyRange &range : allowedKeys(a, sequence, query, kvHead))
      for (int64_t key = range.begin; key < range.end; ++key) {
        const std::vector<double> k = readRow(a.k, sequence.keyBatch, begin + key, kvHead, a.spec.qkDim);
        const std::vector<double> v = readRow(a.v, sequence.keyBatch, begin + key, kvHead, a.spec.vDim);
        const double weight = std::exp(scale * dot(q.data(), k.data(), a.spec.qkDim) - result.lse[row]);
        const double dScore = weight * (dot(v.data(), dRow, a.spec.vDim) - delta);
        const int64_t place = key * a.spec.kvHeads + kvHead;
        keys.attended[place] = true;
        addScaled(&keys.v[place * a.spec.vDim], weight, dRow, a.spec.vDim);
        addScaled(&keys.k[place * a.spec.qkDim], scale * dScore, q.data(), a.spec.qkDim);
        addScaled(&gradient.q[row * a.spec.qkDim], scale * dScore, k.data(), a.spec.qkDim);
      }
  }

private:
  const Attention &a;
  const Sequence &sequence;
  const int64_t query, head, kvHead, row;
};

} // namespace

AttentionGradient differentiate(const Attention &a, const AttentionResult &result, const std::vector<double> &dOut) {
  const int64_t rows = rowEnd(a.sequences);
  AttentionGradient gradient;
  gradient.q.assign(rows * a.spec.queryHeads * a.spec.qkDim, 0.0);
  gradient.delta.assign(rows * a.spec.queryHeads, 0.0);
  for (const Sequence &sequence : a.sequences) {
    const bool isCompressed = definitionOf(a.spec.op).keys == MetKeys::kBlocks;
    const int64_t keys = isCompressed ? a.spec.compressedBlocks(sequence.keys) : sequence.keys;
    KeyGradient &own = gradient.keys.emplace_back();
    own.k.assign(keys * a.spec.kvHeads * a.spec.qkDim, 0.0);
    own.v.assign(keys * a.spec.kvHeads * a.spec.vDim, 0.0);
    own.attended.assign(keys * a.spec.kvHeads, false);
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < a.spec.queryHeads; ++head)
        QueryGradient(a, sequence, query, head).add(result, dOut, gradient, own);
  }
  return gradient;
}

} // namespace nsa::reference
