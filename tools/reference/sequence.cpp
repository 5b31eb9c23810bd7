#include "tools/reference/sequence.h"

#include <algorithm>
#include <cassert>

namespace nsa::reference {

std::vector<Sequence> denseSequences(int64_t batch, int64_t queries, int64_t keys) {
  std::vector<Sequence> sequences;
  for (int64_t b = 0; b < batch; ++b)
    sequences.push_back({.batch = b, .queries = queries, .keyBatch = b, .keys = keys, .firstRow = b * queries});
  return sequences;
}

std::vector<Sequence> packedSequences(std::span<const int32_t> cuSeqlensQ, std::span<const int32_t> cuSeqlensK,
                                      const Spec &spec) {
  assert(cuSeqlensQ.size() == cuSeqlensK.size() && !cuSeqlensQ.empty());
  std::vector<Sequence> sequences;
  int64_t blockBegin = 0;
  for (size_t s = 0; s + 1 < cuSeqlensQ.size(); ++s) {
    const int64_t keys = cuSeqlensK[s + 1] - cuSeqlensK[s];
    sequences.push_back({.queryBegin = cuSeqlensQ[s],
                         .queries = cuSeqlensQ[s + 1] - cuSeqlensQ[s],
                         .keyBegin = cuSeqlensK[s],
                         .keys = keys,
                         .firstRow = cuSeqlensQ[s],
                         .blockBegin = blockBegin});
    blockBegin += spec.compressedBlocks(keys);
  }
  return sequences;
}

int64_t rowEnd(std::span<const Sequence> sequences) {
  int64_t end = 0;
  for (const Sequence &sequence : sequences)
    end = std::max(end, sequence.firstRow + sequence.queries);
  return end;
}

std::vector<Sequence> singleRows(std::span<const Sequence> sequences, std::span<const int64_t> rows) {
  std::vector<Sequence> result;
  for (const int64_t row : rows) {
    for (const Sequence &sequence : sequences) {
      const int64_t query = row - sequence.firstRow;
      if (query < 0 || query >= sequence.queries)
        continue;
      Sequence single = sequence;
      single.queryBegin += query;
      single.queries = 1;
      // With an offset, keys behind the query's own token may be at its position or before.
      if (sequence.keyOffset == 0)
        single.keys = sequence.position(query) + 1;
      else
        single.keyOffset += sequence.keys - 1 - sequence.position(query);
      single.firstRow = row;
      result.push_back(single);
    }
  }
  assert(result.size() == rows.size() && "a row that no sequence, or more than one, has");
  return result;
}

std::vector<Sequence> renumberRows(std::vector<Sequence> sequences) {
  int64_t row = 0;
  for (Sequence &sequence : sequences) {
    sequence.firstRow = row;
    row += sequence.queries;
  }
  return sequences;
}

std::vector<Sequence> compressedRows(std::span<const Sequence> sequences, const Spec &spec) {
  std::vector<Sequence> result;
  for (const Sequence &sequence : sequences)
    result.push_back({.batch = sequence.keyBatch,
                      .queryBegin = sequence.blockBegin,
                      .queries = spec.compressedBlocks(sequence.keys)});
  return renumberRows(std::move(result));
}

std::vector<Sequence> keyRows(std::span<const Sequence> sequences) {
  std::vector<Sequence> result;
  for (const Sequence &sequence : sequences)
    result.push_back({.batch = sequence.keyBatch, .queryBegin = sequence.keyBegin, .queries = sequence.keys});
  return renumberRows(std::move(result));
}

std::vector<double> readRows(std::span<const Sequence> sequences, const TensorView &view, int64_t heads,
                             int64_t columns) {
  std::vector<double> values(static_cast<size_t>(rowEnd(sequences) * heads * columns), 0.0);
  for (const Sequence &sequence : sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < heads; ++head)
        view.read(sequence.batch, sequence.queryBegin + query, head,
                  std::span(values).subspan(((sequence.firstRow + query) * heads + head) * columns, columns));
  return values;
}

} // namespace nsa::reference
