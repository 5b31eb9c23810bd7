// What an engine does when no choice is stored for a problem.
// Thread-safety: values.
#pragma once

namespace nsa {

// The numbers of MissPolicy are part of the C ABI (nsa_miss_policy in nsa/nsa.h).
enum class MissPolicy : int { kDefault = 0, kFail = 1, kTune = 2, kBackground = 3 };

} // namespace nsa
