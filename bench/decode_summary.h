// Makes the table of a decoding bench from a CSV with the columns S, ms_total, ms_cmp, ms_sel, ms_win, reads_actual and
// reads_expected. nsa-vibe's bench writes the same columns, and may add reads_actual_decode and reads_expected_decode.
// Thread-safety: decode_summary.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// `name` names the CSV in errors. Other columns are ignored. The summary has the form of a bench's report without a
// machine: it has "table" and "results", so that it is printed like a report.
Result<nlohmann::ordered_json> summarizeDecode(const std::string &name, const std::string &csv);

} // namespace nsa::bench
