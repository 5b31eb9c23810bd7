// Makes the table of a decoding bench from a CSV with the columns S, ms_total, ms_cmp, ms_sel, ms_win, reads_actual and
// reads_expected. nsa-vibe's bench writes the same columns, and may add reads_actual_decode and reads_expected_decode.
// Thread-safety: decode_summary.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// `name` is the name of the CSV in error messages. Other columns are ignored. The summary has the fields "table" and
// "results" of a bench's report, so that the same code prints it. It has no field "machine".
Result<nlohmann::ordered_json> summarizeDecode(const std::string &name, const std::string &csv);

} // namespace nsa::bench
