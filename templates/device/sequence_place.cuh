// Where a sequence of causal attention lies in the tensors, and which keys its queries see
// (templates/header/causal_attention.inc).
//
// The template parameter Facts describes the kernel: kPacked, kCompressed, kKeyStride, kSight, kKOffsetLimit,
// kBadKOffset, and the fields of the table of sequences.
#pragma once

#include "report.cuh"
#include "view.cuh"

namespace nsa {

// The place of a sequence in the tensors, and the queries of the sequence that the launch computes. The launch computes
// `queries` queries, and the first query is at time `first_time` and at position `earlier`. Positions count from the
// first key, so a query before the first key has a negative position.
struct SequencePlace {
  int32 q_entry;
  int32 k_entry;
  int32 k_begin;
  int32 first_time;
  int32 queries;
  int32 earlier;
  int32 k_length; // tokens
};

// Returns the number of queries that the launch computes of a sequence that has `q_length` queries from time `q_begin`
// on.
template <typename Arguments> NSA_DEVICE int32 queries_of(const Arguments &args, int32 q_begin, int32 q_length) {
  return max(min(q_begin + q_length, args.query_end) - max(q_begin, args.query_begin), 0);
}

// A packed launch reads the position of each sequence in the tensors from the table of sequences. The table of
// sequences describes a malformed sequence as a sequence without queries. A dense launch reads the offset of the keys
// itself, and describes a sequence with a malformed one as a sequence with -1 queries and without keys.
template <typename Facts, typename Arguments>
NSA_DEVICE SequencePlace place_sequence(const Arguments &args, int32 batch) {
  SequencePlace place;
  if constexpr (Facts::kPacked) {
    constexpr int32 kBegin = Facts::kCompressed ? Facts::kSequenceCBegin : Facts::kSequenceKBegin;
    const int32 q_begin = load_scalar(args.sequences, batch, Facts::kSequenceQBegin);
    const int32 q_length = load_scalar(args.sequences, batch, Facts::kSequenceQLength);
    place.k_begin = load_scalar(args.sequences, batch, kBegin);
    place.k_length = load_scalar(args.sequences, batch, Facts::kSequenceKLength);
    place.k_entry = load_scalar(args.sequences, batch, Facts::kSequenceKEntry);
    place.q_entry = load_scalar(args.sequences, batch, Facts::kSequenceQEntry);
    place.first_time = max(q_begin, args.query_begin);
    place.queries = queries_of(args, q_begin, q_length);
    place.earlier = place.k_length - (q_begin + q_length - place.first_time) -
                    load_scalar(args.sequences, batch, Facts::kSequenceKOffset);
  } else {
    place.q_entry = place.k_entry = batch;
    place.k_begin = 0;
    place.first_time = max(args.query_begin, 0);
    const int32 offset = args.k_offset.present() ? load_scalar(args.k_offset, batch) : 0;
    const bool bad = offset < -Facts::kKOffsetLimit || offset > Facts::kKOffsetLimit || offset % Facts::kKeyStride != 0;
    report(bad, Facts::kBadKOffset, batch, args.status);
    place.queries = bad ? -1 : queries_of(args, 0, args.seqlen_q);
    place.k_length = bad ? 0 : args.seqlen_k;
    place.earlier = args.seqlen_k - (args.seqlen_q - place.first_time) - offset;
  }
  return place;
}

// Returns the number of the first key that is too late for the query at `position`. Without a sliding window, the query
// at `position` attends exactly those keys with numbers below the returned number that exist.
template <typename Facts> NSA_DEVICE int32 past_visible_key(int32 position) {
  return (position + Facts::kSight) / Facts::kKeyStride;
}

// Returns the number of the first key that is too late for the query at `position`, or that does not exist.
template <typename Facts> NSA_DEVICE int32 past_real_key(int32 position, int32 k_length) {
  return past_visible_key<Facts>(min(position, k_length - 1));
}

} // namespace nsa
