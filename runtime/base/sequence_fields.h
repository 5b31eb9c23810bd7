// The record that describes one sequence of a packed launch or of a cache. The kernels `sequences` and
// `cache_sequences` write a table with one record for each sequence, and the other kernels read it. The numbers of the
// fields reach templates by name (kernel_constants.h).
// Thread-safety: constants.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace nsa {

// A begin or a length counts rows of a tensor, and an entry is a batch index. q, k and c stand for queries, keys and
// compressed blocks. A sequence whose lengths or whose offset of keys break a rule has a record of zeros. Only decode
// has other entries than 0. Where calls bind k_offset (Spec::keyOffset), the field k_entry holds the position of the
// sequence's first key instead, which counts tokens and may be negative.
enum class SequenceField : int {
  kQBegin,
  kQLength,
  kKBegin,
  kKLength,
  kCBegin,
  kCLength,
  kKEntry,
  kQEntry,
  kKOffset = kKEntry,
};
inline constexpr std::string_view kSequenceFieldNames[] = {"q_begin", "q_length", "k_begin", "k_length",
                                                           "c_begin", "c_length", "k_entry", "q_entry"};
inline constexpr int64_t kSequenceFields = std::size(kSequenceFieldNames); // int32 of one record
static_assert(kSequenceFields == static_cast<int64_t>(SequenceField::kQEntry) + 1);
// Stored kernels contain the numbers of the fields, so the number of a field must never change.
static_assert(static_cast<int>(SequenceField::kQBegin) == 0 && static_cast<int>(SequenceField::kQLength) == 1 &&
              static_cast<int>(SequenceField::kKBegin) == 2 && static_cast<int>(SequenceField::kKLength) == 3 &&
              static_cast<int>(SequenceField::kCBegin) == 4 && static_cast<int>(SequenceField::kCLength) == 5 &&
              static_cast<int>(SequenceField::kKEntry) == 6 && static_cast<int>(SequenceField::kQEntry) == 7);

// The greatest magnitude of k_offset. Where calls have offsets, sequences have at most kMostOffsetKeys keys, so that
// the distance of a query from the first key fits 32 bits. The 128 are the rows of a tile that may follow the last
// query.
inline constexpr int64_t kMostKOffset = int64_t{1} << 30;
inline constexpr int64_t kMostOffsetKeys = kMostKOffset - 128;

struct SequenceRecord {
  std::array<int32_t, kSequenceFields> fields = {};

  int32_t &operator[](SequenceField field) { return fields[static_cast<size_t>(field)]; }
};

} // namespace nsa
