#include "tools/reference/attention.h"

#include "tools/reference/key_values.h"
#include "tools/reference/parallel.h"
#include "tools/reference/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace nsa::reference {

double softmaxScale(const Spec &spec) {
  return spec.scale != 0 ? spec.scale : 1.0 / std::sqrt(static_cast<double>(spec.qkDim));
}

std::vector<KeyRange> allowedKeys(const Attention &a, const Sequence &sequence, int64_t query, int64_t kvHead) {
  const int64_t position = sequence.position(query);
  std::vector<KeyRange> ranges;
  auto add = [&](int64_t begin, int64_t end) {
    if (begin < end)
      ranges.push_back({begin, end});
  };
  switch (definitionOf(a.spec.op).keys) {
  case MetKeys::kAll:
    add(0, sequence.keysUpTo(query));
    break;
  case MetKeys::kWindow:
    add(std::max<int64_t>(0, position - sequence.keyOffset - a.spec.window + 1), sequence.keysUpTo(query));
    break;
  case MetKeys::kBlocks:
    // A block is visible iff its last token is: the visible blocks are the compressed blocks of the tokens up to the
    // query.
    add(0, a.spec.compressedBlocks(sequence.keysUpTo(query)));
    break;
  case MetKeys::kListed: {
    const std::span<const int32_t> list = a.blockLists.at(sequence.firstRow + query, kvHead);
    for (const int64_t block : std::set<int64_t>(list.begin(), list.end()))
      if (block >= 0)
        add(block * a.spec.selBlock, std::min((block + 1) * a.spec.selBlock, position + 1));
    break;
  }
  case MetKeys::kNone:
    assert(false && "not an attention operator");
  }
  return ranges;
}

// Eight sums side by side: one alone would wait for each addition.
double dot(const double *a, const double *b, int64_t count) {
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {}, rest = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i)
    rest += a[i] * b[i];
  return std::accumulate(sums, sums + kLanes, rest);
}

namespace {

void attendQuery(const Attention &a, const Sequence &sequence, const KeyValues &kv, const std::vector<KeyRange> &ranges,
                 int64_t query, int64_t head, AttentionResult &result) {
  const double scale = softmaxScale(a.spec);
  std::vector<double> q(a.spec.qkDim);
  a.q.read(sequence.batch, sequence.queryBegin + query, head, q);

  std::vector<double> weights;
  for (const KeyRange &range : ranges) {
    for (int64_t key = range.begin; key < range.end; ++key) {
      weights.push_back(scale * dot(q.data(), kv.keyAt(key), a.spec.qkDim));
    }
  }

  const int64_t row = (sequence.firstRow + query) * a.spec.queryHeads + head;
  result.lse[row] = softmax(weights);
  double *out = &result.out[row * a.spec.vDim];
  auto weight = weights.begin();
  for (const KeyRange &range : ranges) {
    for (int64_t key = range.begin; key < range.end; ++key, ++weight) {
      const double *v = kv.valueAt(key);
      for (int64_t c = 0; c < a.spec.vDim; ++c)
        out[c] += *weight * v[c];
    }
  }
}

void attendSequence(const Attention &a, const Sequence &sequence, int threads, AttentionResult &result) {
  const int64_t group = a.spec.queryHeads / a.spec.kvHeads;
  for (int64_t kvHead = 0; kvHead < a.spec.kvHeads; ++kvHead) {
    const KeyValues kv(a, sequence, kvHead);
    forEachIndex(sequence.queries, threads, 16, [&](int64_t query) {
      const std::vector<KeyRange> ranges = allowedKeys(a, sequence, query, kvHead);
      int64_t &reads = result.reads[(sequence.firstRow + query) * a.spec.kvHeads + kvHead];
      for (const KeyRange &range : ranges)
        reads += range.end - range.begin;
      for (int64_t i = 0; i < group; ++i)
        attendQuery(a, sequence, kv, ranges, query, kvHead * group + i, result);
    });
  }
}

} // namespace

AttentionResult attend(const Attention &a, int threads) {
  assert(a.spec.kvHeads > 0 && a.spec.queryHeads % a.spec.kvHeads == 0);
  const int64_t rows = rowEnd(a.sequences);
  AttentionResult result;
  result.out.assign(rows * a.spec.queryHeads * a.spec.vDim, 0.0);
  result.lse.assign(rows * a.spec.queryHeads, -std::numeric_limits<double>::infinity());
  result.reads.assign(rows * a.spec.kvHeads, 0);

  // Many sequences, which are short ones, run side by side, and so do single rows; of others it is the queries that do.
  const int64_t sequences = static_cast<int64_t>(a.sequences.size());
  const bool many =
      sequences >= 16 || std::ranges::all_of(a.sequences, [](const Sequence &s) { return s.queries <= 1; });
  forEachIndex(sequences, many ? threads : 1, 1,
               [&](int64_t s) { attendSequence(a, a.sequences[s], many ? 1 : threads, result); });
  return result;
}

} // namespace nsa::reference
