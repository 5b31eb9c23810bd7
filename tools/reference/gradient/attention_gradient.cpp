#include "tools/reference/gradient/attention_gradient.h"

#include <algorithm>
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

double norm(const double *row, int64_t columns) { return std::sqrt(dot(row, row, columns)); }

// What one query of one head adds.
class QueryGradient {
public:
  QueryGradient(const Attention &attention, const Sequence &sequence, int64_t query, int64_t head)
      : a(attention), sequence(sequence), query(query), kvHead(head / a.spec.group()),
        row((sequence.firstRow + query) * a.spec.queryHeads + head),
        firstKey(definitionOf(a.spec.op).keys == MetKeys::kBlocks ? sequence.blockBegin : sequence.keyBegin),
        q(readRow(a.q, sequence.batch, sequence.queryBegin + query, head, a.spec.qkDim)) {}

  void add(const AttentionResult &result, const std::vector<double> &dOut, AttentionGradient &gradient,
           KeyGradient *keys) const {
    double &delta = gradient.delta[row];
    delta = dot(&result.out[row * a.spec.vDim], &dOut[row * a.spec.vDim], a.spec.vDim);
    for (const KeyRange &range : allowedKeys(a, sequence, query, kvHead))
      for (int64_t key = range.begin; key < range.end; ++key)
        addKey(key, result.lse[row], delta, dOut, keys, key, &gradient.q[row * a.spec.qkDim], &gradient.qTerms[row]);
  }

  // What the query adds to the gradients of one key, which stand at `place`, and to its own, each unless it is null.
  void addKey(int64_t key, double lse, double delta, const std::vector<double> &dOut, KeyGradient *keys, int64_t place,
              double *dQ, double *qTerms) const {
    const double scale = softmaxScale(a.spec);
    const double *dRow = &dOut[row * a.spec.vDim];
    const std::vector<double> k = readRow(a.k, sequence.keyBatch, firstKey + key, kvHead, a.spec.qkDim);
    const std::vector<double> v = readRow(a.v, sequence.keyBatch, firstKey + key, kvHead, a.spec.vDim);
    const double weight = std::exp(scale * dot(q.data(), k.data(), a.spec.qkDim) - lse);
    const double dScore = weight * (dot(v.data(), dRow, a.spec.vDim) - delta);
    const double term = scale * weight * norm(dRow, a.spec.vDim) * norm(v.data(), a.spec.vDim);
    if (keys) {
      const int64_t keyRow = place * a.spec.kvHeads + kvHead;
      keys->attended[keyRow] = true;
      keys->kTerms[keyRow] += term * term * dot(q.data(), q.data(), a.spec.qkDim);
      addScaled(&keys->v[keyRow * a.spec.vDim], weight, dRow, a.spec.vDim);
      addScaled(&keys->k[keyRow * a.spec.qkDim], scale * dScore, q.data(), a.spec.qkDim);
    }
    if (dQ) {
      addScaled(dQ, scale * dScore, k.data(), a.spec.qkDim);
      *qTerms += term * term * dot(k.data(), k.data(), a.spec.qkDim);
    }
  }

private:
  const Attention &a;
  const Sequence &sequence;
  const int64_t query, kvHead, row, firstKey;
  const std::vector<double> q;
};

bool mayAttend(const Attention &a, const Sequence &sequence, int64_t query, int64_t kvHead, int64_t key) {
  return std::ranges::any_of(allowedKeys(a, sequence, query, kvHead),
                             [&](const KeyRange &range) { return key >= range.begin && key < range.end; });
}

KeyGradient zeros(const Spec &spec, int64_t keys) {
  return {.k = std::vector(static_cast<size_t>(keys * spec.kvHeads * spec.qkDim), 0.0),
          .v = std::vector(static_cast<size_t>(keys * spec.kvHeads * spec.vDim), 0.0),
          .attended = std::vector(static_cast<size_t>(keys * spec.kvHeads), false),
          .kTerms = std::vector(static_cast<size_t>(keys * spec.kvHeads), 0.0)};
}

AttentionGradient differentiateAll(const Attention &a, const AttentionResult &result, const std::vector<double> &dOut,
                                   bool withKeys) {
  const int64_t rows = rowEnd(a.sequences);
  AttentionGradient gradient;
  gradient.q.assign(rows * a.spec.queryHeads * a.spec.qkDim, 0.0);
  gradient.delta.assign(rows * a.spec.queryHeads, 0.0);
  gradient.qTerms.assign(rows * a.spec.queryHeads, 0.0);
  for (const Sequence &sequence : a.sequences) {
    const bool isCompressed = definitionOf(a.spec.op).keys == MetKeys::kBlocks;
    const int64_t keys = isCompressed ? a.spec.compressedBlocks(sequence.keys) : sequence.keys;
    KeyGradient *own = withKeys ? &gradient.keys.emplace_back(zeros(a.spec, keys)) : nullptr;
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < a.spec.queryHeads; ++head)
        QueryGradient(a, sequence, query, head).add(result, dOut, gradient, own);
  }
  return gradient;
}

} // namespace

AttentionGradient differentiate(const Attention &a, const AttentionResult &result, const std::vector<double> &dOut) {
  return differentiateAll(a, result, dOut, /*withKeys=*/true);
}

AttentionGradient differentiateQueries(const Attention &a, const AttentionResult &result,
                                       const std::vector<double> &dOut) {
  return differentiateAll(a, result, dOut, /*withKeys=*/false);
}

KeyGradient differentiateKey(const Attention &a, const Sequence &sequence, int64_t key, const SavedRows &saved,
                             const std::vector<double> &dOut) {
  KeyGradient gradient = zeros(a.spec, 1);
  const int64_t group = a.spec.group();
  for (int64_t query = 0; query < sequence.queries; ++query)
    for (int64_t kvHead = 0; kvHead < a.spec.kvHeads; ++kvHead) {
      if (!mayAttend(a, sequence, query, kvHead, key))
        continue;
      for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) {
        const int64_t row = (sequence.firstRow + query) * a.spec.queryHeads + head;
        QueryGradient(a, sequence, query, head)
            .addKey(key, saved.lse[row], saved.delta[row], dOut, &gradient, 0, nullptr, nullptr);
      }
    }
  return gradient;
}

} // namespace nsa::reference
