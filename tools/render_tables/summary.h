// The table that README shows: the whole forward pass, decoding and the start of a process on one device. Each row
// shows the time of NSA Runtime and, from the records, the time of the fastest dense attention and the time of the
// fastest other program for sparse attention.
// Thread-safety: summary.h has only pure functions.
#pragma once

#include "tools/render_tables/tables.h"

#include <functional>
#include <string>
#include <vector>

namespace nsa::tables {

// Records of a device, each with the array `results`. A decoding step is shown if `peers` has the decoding step of the
// same heads and batch in another program for sparse attention, at a length that differs by at most 1 %. Its row may
// have the time of dense attention in `us_dense`, in microseconds, and the name of the program in `dense_by`.
//
// The record `peers` has the measurements of other
// programs. In a row of `peers`, the field `measure` is `forward`, `decode` or `startup`, and the field `op` is `nsa`
// or `dense`. The field `median_ms` is the time of a forward pass, of a decoding step, or from the start of a process
// to its first result. The fields `heads`, `tokens` and `batch` describe the measured shape; for `decode`, `tokens` is
// the length of the cache.
struct SummaryRecords {
  const Json *prefill = nullptr;
  std::vector<const Json *> decode{};
  const Json *startup = nullptr, *peers = nullptr;
};

// The callback `sourceOf` returns the commit, date and age of a record; each row of the table ends with the commit,
// date and age of the record from which the time of NSA Runtime is taken. If the records contain no time of another
// program, the table shows "-".
std::string summaryTable(const SummaryRecords &records, const std::function<std::string(const Json &)> &sourceOf);

} // namespace nsa::tables
