// The table of a decoding bench, from its CSV with the columns S, ms_total, ms_cmp, ms_sel, ms_win, reads_actual and
// reads_expected, as nsa-vibe's bench writes them too; reads_actual_decode and reads_expected_decode may follow.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

// `name` stands for the text in errors. Other columns are passed over. The shape of a bench's report, without a
// machine: "table" and "results", so that it is printed as they are.
Result<nlohmann::ordered_json> summarizeDecode(const std::string &name, const std::string &csv);

} // namespace nsa::bench
