// The keys and values of one sequence and kv head that some query may attend, read once into contiguous fp64.
// Thread-safety: constant after construction.
#pragma once

#include "tools/reference/attention.h"

#include <cstdint>
#include <vector>

namespace nsa::reference {

class KeyValues {
public:
  KeyValues(const Attention &attention, const Sequence &sequence, int64_t kvHead);

  // The qk_dim or v_dim elements of a key that some query may attend. `key` counts as in a KeyRange.
  const double *keyAt(int64_t key) const { return &k[slot[key] * qkDim]; }
  const double *valueAt(int64_t key) const { return &v[slot[key] * vDim]; }

private:
  int64_t qkDim, vDim;
  std::vector<int64_t> slot; // of each key: where it lies in k and v. Neighbours lie side by side.
  std::vector<double> k, v;
};

} // namespace nsa::reference
