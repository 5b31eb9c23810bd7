// How large the call is that a tuning times, and what is said wherever its times are shown. A long call is cut, so that
// one run stays short: a time of 64 of 1024 queries must not pass for that of all.
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

// "64 of 1024 queries timed", "8192 of 32768 queries over 131072 of 524288 keys timed", "512 of 4096 keys timed";
// empty where the whole call was timed. Queries are those of all sequences, keys those of one; compression has its keys
// counted over all sequences, as it sees no query.
std::string cutText(const Spec &spec, const Maxima &maxima, const TimedShape &timed);

// What a stored choice keeps of a cut in its provenance, " timed=64_of_1024_queries", and the text of it again. Empty
// of empty.
std::string cutProvenance(std::string_view cut);
std::string cutTextOf(std::string_view provenance);

} // namespace nsa
