// Attention as the model sees it. Thread-safety: one thread at a time.
#pragma once

#include "geometry.h"

#include <cstdint>

namespace example {

template <typename Real> class Attention {
public:
  virtual ~Attention() = default;

  // Computes `out` [batch, kSequence, kQueryRow] from `projected` [batch, kSequence, column::kEnd], and keeps for each
  // layer what the backward pass of this layer needs.
  virtual void forward(std::int64_t layer, std::int64_t batch, const Real *projected, Real *out) = 0;

  // Computes the gradient of all of `projected` from the gradient of `out`. `projected` is as it was in `forward`.
  virtual void backward(std::int64_t layer, std::int64_t batch, const Real *projected, const Real *dOut,
                        Real *dProjected) = 0;
};

} // namespace example
