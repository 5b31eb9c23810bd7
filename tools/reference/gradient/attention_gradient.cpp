#include "tools/reference/gradient/attention_gradient.h"

#include "tools/reference/key_values.h"

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

// The squared norm.
double square(const double *row, int64_t columns) { return dot(row, row, columns); }

// A key and its value, with their squared norms.
struct KeyRow {
  KeyRow(const Spec &spec, int64_t place, const double *k, const double *v)
      : place(place), k(k), v(v), kSquare(square(k, spec.qkDim)), vSquare(square(v, spec.vDim)) {}
  int64_t place; // of its gradients
  const double *k, *v;
  double kSquare, vSquare;
};

// What one query of one head adds.
class QueryGradient {
public:
  QueryGradient(const Attention &attention, const Sequence &sequence, int64_t query, int64_t head,
                const std::vector<double> &dOut)
      : spec(attention.spec), scale(softmaxScale(spec)), kvHead(head / spec.group()),
        row((sequence.firstRow + query) * spec.queryHeads + head),
        q(readRow(attention.q, sequence.batch, sequence.queryBegin + query, head, spec.qkDim)),
        dRow(&dOut[row * spec.vDim]), qSquare(square(q.data(), spec.qkDim)), dSquare(square(dRow, spec.vDim)) {}

  // What the query adds to the gradients of one key, and to its own, each unless it is null.
  void addKey(const KeyRow &key, double lse, double delta, KeyGradient *keys, double *dQ, double *qTerms) const {
    const double weight = std::exp(scale * dot(q.data(), key.k, spec.qkDim) - lse);
    const double dScore = weight * (dot(key.v, dRow, spec.vDim) - delta);
    const double termSquare = scale * scale * weight * weight * dSquare * key.vSquare;
    if (keys) {
      const int64_t keyRow = key.place * spec.kvHeads + kvHead;
      keys->attended[keyRow] = true;
      keys->kTerms[keyRow] += termSquare * qSquare;
      addScaled(&keys->v[keyRow * spec.vDim], weight, dRow, spec.vDim);
      addScaled(&keys->k[keyRow * spec.qkDim], scale * dScore, q.data(), spec.qkDim);
    }
    if (dQ) {
      addScaled(dQ, scale * dScore, key.k, spec.qkDim);
      *qTerms += termSquare * key.kSquare;
    }
  }

private:
  const Spec &spec;
  const double scale;
  const int64_t kvHead, row;
  const std::vector<double> q;
  const double *dRow;
  const double qSquare, dSquare;
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

// What the queries of the heads of one kv head add.
void addHead(const Attention &a, const Sequence &sequence, int64_t kvHead, const AttentionResult &result,
             const std::vector<double> &dOut, AttentionGradient &gradient, KeyGradient *keys) {
  const KeyValues kv(a, sequence, kvHead);
  for (int64_t query = 0; query < sequence.queries; ++query) {
    std::vector<KeyRow> met;
    for (const KeyRange &range : allowedKeys(a, sequence, query, kvHead))
      for (int64_t key = range.begin; key < range.end; ++key)
        met.emplace_back(a.spec, key, kv.keyAt(key), kv.valueAt(key));
    for (int64_t head = kvHead * a.spec.group(); head < (kvHead + 1) * a.spec.group(); ++head) {
      const QueryGradient ofQuery(a, sequence, query, head, dOut);
      const int64_t row = (sequence.firstRow + query) * a.spec.queryHeads + head;
      const double delta = dot(&result.out[row * a.spec.vDim], &dOut[row * a.spec.vDim], a.spec.vDim);
      gradient.delta[row] = delta;
      for (const KeyRow &key : met)
        ofQuery.addKey(key, result.lse[row], delta, keys, &gradient.q[row * a.spec.qkDim], &gradient.qTerms[row]);
    }
  }
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
    for (int64_t kvHead = 0; kvHead < a.spec.kvHeads; ++kvHead)
      addHead(a, sequence, kvHead, result, dOut, gradient, own);
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
  const int64_t time =
      key + (definitionOf(a.spec.op).keys == MetKeys::kBlocks ? sequence.blockBegin : sequence.keyBegin);
  for (int64_t kvHead = 0; kvHead < a.spec.kvHeads; ++kvHead) {
    const std::vector<double> k = readRow(a.k, sequence.keyBatch, time, kvHead, a.spec.qkDim);
    const std::vector<double> v = readRow(a.v, sequence.keyBatch, time, kvHead, a.spec.vDim);
    const KeyRow only(a.spec, 0, k.data(), v.data());
    for (int64_t query = 0; query < sequence.queries; ++query) {
      if (!mayAttend(a, sequence, query, kvHead, key))
        continue;
      for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) {
        const int64_t row = (sequence.firstRow + query) * a.spec.queryHeads + head;
        QueryGradient(a, sequence, query, head, dOut)
            .addKey(only, saved.lse[row], saved.delta[row], &gradient, nullptr, nullptr);
      }
    }
  }
  return gradient;
}

} // namespace nsa::reference
