// The numbers that kernels share with the runtime, by the names that templates use for them: `sequence_q_begin` and the
// other fields of the table of sequences, `sequence_fields` (how many there are), `most_k_offset` (the greatest offset
// of a sequence's keys), and `status_malformed_list` and the other codes of the status word.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace nsa {

// Looks up the number of a name. Returns false for a name that is no kernel constant.
bool lookupKernelConstant(std::string_view name, int64_t &number);

} // namespace nsa
