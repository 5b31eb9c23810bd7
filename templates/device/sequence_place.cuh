// Where a sequence of causal attention lies in the tensors, and which keys its queries see
// (templates/header/causal_attention.inc).
//
// The template parameter Facts describes the kernel: kPacked, kCompressed, kKeyStride, kSight, kKeyOffset,
// kKOffsetLimit, kBadKOffset, and the fields of the table of sequences.
#pragma once

#include "report.cuh"
#include "view.cuh"

namespace nsa {

// The place of a sequence in the tensors, and the queries of the sequence that the launch computes. The launch computes
// `queries` queries, and the first query is at time `first_time` and at position `earlier`. Positions count from the
// first key, so where the keys have an offset, a query may have a negative position or one behind the last key.
struct SequencePlace {
  int32 q_entry;
  int32 k_entry;
  int32 k_begin;
  int32 first_time;
  int32 queries;
  int32 earlier;
  int32 k_length; // tokens
};

// Returns the number of queries that the launch computes of a sequence with `q_length` queries from time `q_begin` on.
template <typename Arguments> NSA_DEVICE int32 queries_of(const Arguments &args, int32 q_begin, int32 q_length) {
  return max(min(q_begin + q_length, args.query_end) - max(q_begin, args.query_begin), 0);
}

// Returns how many queries of a sequence stand in front of a border of the launch, up to a multiple of query_step
// (up_to in templates/tile/library/sequence.tile).
NSA_DEVICE int32 queries_up_to(int32 queries, int32 q_length, int32 query_step) {
  const int32 there = min(max(queries, 0), q_length);
  return there + min((query_step - there % query_step) % query_step, q_length - there);
}

// Moves the queries by the offset of the keys. The table of a packed launch holds the offset in the place of the entry
// of the keys, which is 0. A dense launch reads the offset itself, and describes a sequence with a malformed one as a
// sequence with -1 queries and without keys.
template <typename Facts, typename Arguments>
NSA_DEVICE void offset_keys(const Arguments &args, int32 batch, SequencePlace &place) {
  if constexpr (Facts::kPacked) {
    place.earlier -= place.k_entry;
    place.k_entry = 0;
  } else {
    const int32 offset = args.k_offset.present() ? load_scalar(args.k_offset, batch) : 0;
    const bool bad = offset < -Facts::kKOffsetLimit || offset > Facts::kKOffsetLimit || offset % Facts::kKeyStride != 0;
    report(bad, Facts::kBadKOffset, batch, args.status);
    // The difference with a malformed offset may overflow, and with it the number of the last visible key.
    place.earlier = bad ? 0 : place.earlier - offset;
    place.queries = bad ? -1 : place.queries;
    place.k_length = bad ? 0 : place.k_length;
  }
}

// A packed launch reads the position of each sequence in the tensors from the table of sequences. The table of
// sequences describes a malformed sequence as a sequence without queries.
template <typename Facts, typename Arguments>
NSA_DEVICE SequencePlace place_sequence(const Arguments &args, int32 batch) {
  constexpr int32 kBegin = Facts::kCompressed ? Facts::kSequenceCBegin : Facts::kSequenceKBegin;
  const int32 q_begin = Facts::kPacked ? load_scalar(args.sequences, batch, Facts::kSequenceQBegin) : 0;
  const int32 q_length = Facts::kPacked ? load_scalar(args.sequences, batch, Facts::kSequenceQLength) : args.seqlen_q;
  const int32 k_begin = Facts::kPacked ? load_scalar(args.sequences, batch, kBegin) : 0;
  const int32 k_length = Facts::kPacked ? load_scalar(args.sequences, batch, Facts::kSequenceKLength) : args.seqlen_k;
  const int32 k_entry = Facts::kPacked ? load_scalar(args.sequences, batch, Facts::kSequenceKEntry) : batch;
  const int32 q_entry = Facts::kPacked ? load_scalar(args.sequences, batch, Facts::kSequenceQEntry) : batch;
  int32 first = max(args.query_begin - q_begin, 0), past = min(q_length, args.query_end - q_begin);
  if constexpr (Facts::kPacked) {
    first = queries_up_to(first, q_length, args.query_step);
    past = queries_up_to(past, q_length, args.query_step);
  }
  const int32 cached = k_length - q_length;
  SequencePlace place = {q_entry, k_entry, k_begin, q_begin + first, max(past - first, 0), cached + first, k_length};
  if constexpr (Facts::kKeyOffset)
    offset_keys<Facts>(args, batch, place);
  return place;
}

// Returns the number of the first key that is too late for the query at `position`. Without a sliding window, the query
// at `position` attends exactly those keys with numbers below the returned number that exist.
template <typename Facts> NSA_DEVICE int32 past_visible_key(int32 position) {
  return (position + Facts::kSight) / Facts::kKeyStride;
}

// Returns the number of the first key that is too late for the query at `position`, or that does not exist. Only with
// an offset of keys does a query look behind the last key.
template <typename Facts> NSA_DEVICE int32 past_real_key(int32 position, int32 k_length) {
  if constexpr (Facts::kKeyOffset)
    position = min(position, k_length - 1);
  return past_visible_key<Facts>(position);
}

// Returns the number of the first key in the window of the query at `position`. A query that stands far before all keys
// must not make the difference overflow.
template <typename Facts> NSA_DEVICE int32 first_windowed_key(int32 position, int32 window) {
  const int32 past = past_visible_key<Facts>(position);
  return max((Facts::kKeyOffset ? max(past, 0) : past) - window, 0);
}

} // namespace nsa
