#include "tools/reference/selection.h"

#include "tools/reference/attention.h"
#include "tools/reference/parallel.h"
#include "tools/reference/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace nsa::reference {
namespace {

// p_grp: the softmax of each head over the visible compressed blocks, summed over the group's heads.
std::vector<double> groupProbabilities(const Selection &s, const Sequence &sequence, int64_t query, int64_t kvHead) {
  const Spec &spec = s.spec;
  const int64_t visible = spec.compressedBlocks(sequence.position(query) + 1);
  const int64_t group = spec.queryHeads / spec.kvHeads;
  std::vector<double> keys(static_cast<size_t>(visible * spec.qkDim));
  for (int64_t block = 0; block < visible; ++block)
    s.kComp.read(sequence.keyBatch, sequence.blockBegin + block, kvHead,
                 std::span(keys).subspan(block * spec.qkDim, spec.qkDim));

  std::vector<double> sums(visible, 0.0);
  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) {
    std::vector<double> q(static_cast<size_t>(spec.qkDim));
    s.q.read(sequence.batch, sequence.queryBegin + query, head, q);
    std::vector<double> p;
    for (int64_t block = 0; block < visible; ++block)
      p.push_back(dot(q.data(), &keys[block * spec.qkDim], spec.qkDim) * softmaxScale(spec));
    softmax(p);
    for (int64_t block = 0; block < visible; ++block)
      sums[block] += p[block];
  }
  return sums;
}

} // namespace

std::vector<double> blockScores(const Selection &s, const Sequence &sequence, int64_t query, int64_t kvHead) {
  const Spec &spec = s.spec;
  const std::vector<double> p = groupProbabilities(s, sequence, query, kvHead);
  const int64_t own = sequence.position(query) / spec.selBlock;
  std::vector<double> scores(own + 1, 0.0);
  for (int64_t c = 0; c < static_cast<int64_t>(p.size()); ++c) {
    const int64_t begin = c * spec.cmpStride, end = begin + spec.cmpBlock;
    // A visible block ends at the query or before it, so the blocks that it overlaps are b or before b.
    for (int64_t j = begin / spec.selBlock; j * spec.selBlock < end; ++j) {
      const int64_t shared = std::min(end, (j + 1) * spec.selBlock) - std::max(begin, j * spec.selBlock);
      scores[j] += static_cast<double>(shared) / spec.cmpStride * p[c];
    }
  }
  return scores;
}

bool isForced(const Spec &spec, int64_t block, int64_t own) {
  return block <= own && (block < spec.initBlocks || block > own - spec.localBlocks);
}

bool ranksBefore(std::span<const double> scores, int64_t block, int64_t other) {
  const double score = scores[block], otherScore = scores[other];
  if (std::isnan(score) != std::isnan(otherScore))
    return std::isnan(otherScore);
  if (score > otherScore || score < otherScore)
    return score > otherScore;
  return block < other; // equal, or both NaN
}

std::vector<int32_t> chooseBlocks(std::span<const double> scores, const Spec &spec) {
  const int64_t blocks = static_cast<int64_t>(scores.size()), own = blocks - 1;
  const size_t places = static_cast<size_t>(std::min<int64_t>(spec.selCount, blocks));
  std::vector<int32_t> chosen, others;
  for (int64_t block = 0; block < blocks; ++block)
    (isForced(spec, block, own) ? chosen : others).push_back(static_cast<int32_t>(block));
  assert(chosen.size() <= places && "init_blocks + local_blocks <= sel_count");
  const auto end = others.begin() + static_cast<int64_t>(places - chosen.size());
  std::partial_sort(others.begin(), end, others.end(), [&](int32_t a, int32_t b) { return ranksBefore(scores, a, b); });
  chosen.insert(chosen.end(), others.begin(), end);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

BlockLists select(const Selection &s, int threads) {
  BlockLists lists = BlockLists::make(rowEnd(s.sequences), s.spec.kvHeads, s.spec.selCount);
  forEachQuery(s.sequences, threads, [&](const Sequence &sequence, int64_t query) {
    for (int64_t kvHead = 0; kvHead < s.spec.kvHeads; ++kvHead) {
      const std::vector<int32_t> chosen = chooseBlocks(blockScores(s, sequence, query, kvHead), s.spec);
      std::copy(chosen.begin(), chosen.end(), lists.at(sequence.firstRow + query, kvHead).begin());
    }
  });
  return lists;
}

} // namespace nsa::reference
