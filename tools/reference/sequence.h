// Where the queries, keys and compressed rows of each sequence of a batch lie, and which rows of a result are theirs.
// A query is computed from what is in front of it only, so one query is also a sequence of its own that ends with it,
// or with the last key where keys have an offset: that is how a few rows of a long batch are computed or compared.
// Thread-safety: values and pure functions.
#pragma once

#include "tools/reference/tensor_view.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace nsa::reference {

struct Sequence {
  int64_t batch = 0; // of tensors indexed by query
  int64_t queryBegin = 0;
  int64_t queries = 0;  // T_q
  int64_t keyBatch = 0; // of keys, values and compressed rows
  int64_t keyBegin = 0;
  int64_t keys = 0;       // T
  int64_t firstRow = 0;   // of the result
  int64_t blockBegin = 0; // the time of compressed row 0
  int64_t keyOffset = 0;  // the position of key 0

  // Of query i: queries stand at the end of their keys (docs/specification.md 1).
  int64_t position(int64_t query) const { return keys - queries + query; }
  // The number of tokens behind key 0, up to the query's position, that the sequence has.
  int64_t keysUpTo(int64_t query) const { return std::min(position(query) - keyOffset + 1, keys); }
};

std::vector<Sequence> denseSequences(int64_t batch, int64_t queries, int64_t keys);
// cu_seqlens of batch + 1 entries each, well-formed. The spec's cmp_block and cmp_stride place the compressed rows.
std::vector<Sequence> packedSequences(std::span<const int32_t> cuSeqlensQ, std::span<const int32_t> cuSeqlensK,
                                      const Spec &spec);

// The behind of the last row. Rows are addressed absolutely, so that a packed batch may end before its tensor does.
int64_t rowEnd(std::span<const Sequence> sequences);

// Each of these rows of the result as a sequence of its own; rows keep their numbers.
std::vector<Sequence> singleRows(std::span<const Sequence> sequences, std::span<const int64_t> rows);
// The same sequences with rows counted from 0 in their order: results are as small as what is computed.
std::vector<Sequence> renumberRows(std::vector<Sequence> sequences);

// The compressed rows of each sequence as "queries": their view is compared like one of queries. Rows are numbered as
// packed compressed rows are, one sequence after the other.
std::vector<Sequence> compressedRows(std::span<const Sequence> sequences, const Spec &spec);

// The same of the keys.
std::vector<Sequence> keyRows(std::span<const Sequence> sequences);

// [rowEnd, heads, columns] of what a view holds for all queries of the sequences.
std::vector<double> readRows(std::span<const Sequence> sequences, const TensorView &view, int64_t heads,
                             int64_t columns);

} // namespace nsa::reference
