// The softmax of one row: of keys, of compressed blocks, of gates.
// Thread-safety: pure functions.
#pragma once

#include <vector>

namespace nsa::reference {

// Replaces scores by their softmax and gives their log-sum-exp (natural); -inf for no scores.
double softmax(std::vector<double> &scores);

} // namespace nsa::reference
