#include "tests/reference/attention.h"

#include "tests/reference/elements.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <limits>
#include <thread>

namespace nsa::reference {

double TensorView::at(int64_t batch, int64_t time, int64_t head, int64_t column) const {
  return loadElement(dtype, data, batch * batchStride + time * timeStride + head * headStride + column);
}

std::vector<Sequence> denseSequences(int64_t batch, int64_t queries, int64_t keys) {
  std::vector<Sequence> sequences;
  for (int64_t b = 0; b < batch; ++b)
    sequences.push_back(
        {.batch = b, .queryBegin = 0, .queries = queries, .keyBegin = 0, .keys = keys, .firstRow = b * queries});
  return sequences;
}

std::vector<Sequence> packedSequences(std::span<const int32_t> cuSeqlensQ, std::span<const int32_t> cuSeqlensK) {
  assert(cuSeqlensQ.size() == cuSeqlensK.size() && !cuSeqlensQ.empty());
  std::vector<Sequence> sequences;
  for (size_t s = 0; s + 1 < cuSeqlensQ.size(); ++s)
    sequences.push_back({.batch = 0,
                         .queryBegin = cuSeqlensQ[s],
                         .queries = cuSeqlensQ[s + 1] - cuSeqlensQ[s],
                         .keyBegin = cuSeqlensK[s],
                         .keys = cuSeqlensK[s + 1] - cuSeqlensK[s],
                         .firstRow = cuSeqlensQ[s]});
  return sequences;
}

int64_t Attention::rows() const {
  int64_t rows = 0;
  for (const Sequence &sequence : sequences)
    rows += sequence.queries;
  return rows;
}

double Attention::effectiveScale() const { return scale != 0 ? scale : 1.0 / std::sqrt(static_cast<double>(qkDim)); }

namespace {

// The keys and values of one sequence and kv head, read once into contiguous fp64.
struct KeyValues {
  std::vector<double> k, v;
};

KeyValues readKeyValues(const Attention &a, const Sequence &sequence, int64_t kvHead) {
  KeyValues result;
  for (int64_t t = 0; t < sequence.keys; ++t) {
    for (int64_t c = 0; c < a.qkDim; ++c)
      result.k.push_back(a.k.at(sequence.batch, sequence.keyBegin + t, kvHead, c));
    for (int64_t c = 0; c < a.vDim; ++c)
      result.v.push_back(a.v.at(sequence.batch, sequence.keyBegin + t, kvHead, c));
  }
  return result;
}

void attendQuery(const Attention &a, const Sequence &sequence, const KeyValues &kv, int64_t query, int64_t head,
                 AttentionResult &result) {
  const int64_t position = sequence.keys - sequence.queries + query; // bottom-right alignment
  const int64_t firstKey = a.op == Operator::kWindow ? std::max<int64_t>(0, position - a.window + 1) : 0;
  const double scale = a.effectiveScale();

  std::vector<double> q(a.qkDim);
  for (int64_t c = 0; c < a.qkDim; ++c)
    q[c] = a.q.at(sequence.batch, sequence.queryBegin + query, head, c);

  std::vector<double> scores;
  double maximum = -std::numeric_limits<double>::infinity();
  for (int64_t key = firstKey; key <= position; ++key) {
    double score = 0;
    for (int64_t c = 0; c < a.qkDim; ++c)
      score += q[c] * kv.k[key * a.qkDim + c];
    scores.push_back(score * scale);
    maximum = std::max(maximum, scores.back());
  }

  const int64_t row = (sequence.firstRow + query) * a.queryHeads + head;
  double *out = &result.out[row * a.vDim];
  double sum = 0;
  for (int64_t key = firstKey; key <= position; ++key) {
    const double weight = std::exp(scores[key - firstKey] - maximum);
    sum += weight;
    for (int64_t c = 0; c < a.vDim; ++c)
      out[c] += weight * kv.v[key * a.vDim + c];
  }
  for (int64_t c = 0; c < a.vDim; ++c)
    out[c] /= sum;
  result.lse[row] = maximum + std::log(sum);
}

} // namespace

AttentionResult attend(const Attention &attention, int threads) {
  assert(attention.kvHeads > 0 && attention.queryHeads % attention.kvHeads == 0);
  const int64_t group = attention.queryHeads / attention.kvHeads;
  // Rows are addressed absolutely, so that a packed batch may end before its tensor does.
  int64_t rowEnd = 0;
  for (const Sequence &sequence : attention.sequences)
    rowEnd = std::max(rowEnd, sequence.firstRow + sequence.queries);

  AttentionResult result;
  result.out.assign(rowEnd * attention.queryHeads * attention.vDim, 0.0);
  result.lse.assign(rowEnd * attention.queryHeads, -std::numeric_limits<double>::infinity());

  const int workers = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  for (const Sequence &sequence : attention.sequences) {
    if (sequence.queries == 0)
      continue;
    for (int64_t kvHead = 0; kvHead < attention.kvHeads; ++kvHead) {
      const KeyValues kv = readKeyValues(attention, sequence, kvHead);
      std::atomic<int64_t> next = 0;
      auto work = [&] {
        for (int64_t query = next++; query < sequence.queries; query = next++)
          for (int64_t i = 0; i < group; ++i)
            attendQuery(attention, sequence, kv, query, kvHead * group + i, result);
      };
      std::vector<std::thread> pool;
      for (int64_t t = 1; t < std::min<int64_t>(workers, sequence.queries / 16); ++t)
        pool.emplace_back(work);
      work();
      for (std::thread &thread : pool)
        thread.join();
    }
  }
  return result;
}

} // namespace nsa::reference
