// The table that README shows: the whole forward pass, decoding and the start of a process on one device. Each row also
// shows, next to our time, the recorded times of the fastest dense attention and of the fastest other program for
// sparse attention.
// Thread-safety: summary.h has only pure functions.
#pragma once

#include "tools/render_tables/tables.h"

#include <functional>
#include <string>

namespace nsa::tables {

// Each has `results`. A row of `peers` says what it measured: `measure` is `forward`, `decode` or `startup`, `op` is
// `nsa` or `dense`, `median_ms` is the time of a pass, of a step, or from a process's start to its first result.
// `heads`, `tokens` (for `decode` the length of the cache) and `batch` have the same meaning as in our own records.
struct SummaryRecords {
  const Json *prefill = nullptr, *decode = nullptr, *startup = nullptr, *peers = nullptr;
};

// The callback `sourceOf` returns the commit, date and age of a record; each row of the table ends with the commit,
// date and age of the record that has NSA Runtime's time. If no time of another program is on record, the table shows
// "-".
std::string summaryTable(const SummaryRecords &records, const std::function<std::string(const Json &)> &sourceOf);

} // namespace nsa::tables
