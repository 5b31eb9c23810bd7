// The sizes of the call that a tuning times, and the text that is shown with the times of the tuning. A tuning times
// fewer queries or keys than a long call has, so that one run stays short. cutText says how many queries and keys were
// timed, because the time of 64 of 1024 queries is not the time of all 1024.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nsa {

struct TimedShape {
  int64_t batch = 0, seqlenQ = 0, seqlenK = 0;

  // "batch=1 seqlen_q=64 seqlen_k=1024"
  std::string text() const;
};

// Says how much of a call was timed: "64 of 1024 queries timed", "8192 of 32768 queries over 131072 of 524288 keys
// timed", "512 of 4096 keys timed". The text of cutText is empty if the whole call was timed. cutText counts queries
// over all sequences and keys in one sequence. For compression, which has no queries, cutText counts keys over all
// sequences.
std::string cutText(const Spec &spec, const Maxima &maxima, const TimedShape &timed);

// A stored choice of a kernel has a provenance, a text that says how the choice was made. cutProvenance converts the
// text of cutText to the form that a provenance contains: " timed=64_of_1024_queries". cutTextOf finds this form in a
// provenance and converts it back to the text of cutText. cutProvenance and cutTextOf return an empty text if the whole
// call was timed.
std::string cutProvenance(std::string_view cut);
std::string cutTextOf(std::string_view provenance);

} // namespace nsa
