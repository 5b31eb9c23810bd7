// Where a sequence of causal attention lies in the tensors, and which keys its queries see
// (templates/header/causal_attention.inc).
//
// The template parameter Facts describes the kernel: kPacked, kCompressed, kKeyStride, kSight, and the fields of the
// table of sequences.
#pragma once

#include "view.cuh"

namespace nsa {

// The place of a sequence in the tensors, and the queries of the sequence that the launch computes. The launch computes
// `queries` queries, and the first query is at time `first_time`. `earlier` is the number of tokens of the sequence
// before the first query of the launch.
struct SequencePlace {
  int32 q_entry;
  int32 k_entry;
  int32 k_begin;
  int32 first_time;
  int32 queries;
  int32 earlier;
};

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
  const int32 q_past = q_begin + q_length;
  const int32 first_time = max(q_begin, args.query_begin);
  const int32 queries = max(min(q_past, args.query_end) - first_time, 0);
  return {q_entry, k_entry, k_begin, first_time, queries, k_length - (q_past - first_time)};
}

// Returns the number of the first key that is too late for the query at `position`. Without a sliding window, the query
// at `position` attends exactly the keys with numbers below the returned number.
template <typename Facts> NSA_DEVICE int32 past_visible_key(int32 position) {
  return (position + Facts::kSight) / Facts::kKeyStride;
}

} // namespace nsa
