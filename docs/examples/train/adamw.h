// The optimiser AdamW, with gradients that are clipped to a norm, and its learning rate over the steps.
// Thread-safety: one thread at a time.
#pragma once

#include "parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace example {

// Rises to `peak` in the first steps, then falls along half a cosine to a twentieth of it.
inline double learningRate(std::int64_t step, std::int64_t steps, double peak) {
  const double warmUp = std::max(1.0, 0.05 * static_cast<double>(steps)), now = static_cast<double>(step) + 1;
  if (now < warmUp)
    return peak * now / warmUp;
  const double done = (now - warmUp) / std::max(1.0, static_cast<double>(steps) - warmUp);
  return peak * (0.05 + 0.95 * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

template <typename Real> class AdamW {
public:
  explicit AdamW(const Layout &layout)
      : parts(layout.parts()), first(static_cast<std::size_t>(layout.count)), second(first.size()) {}

  // Returns the norm of the gradient before it is clipped.
  double step(std::vector<Real> &parameters, const std::vector<Real> &gradient, double rate) {
    double squares = 0;
    for (Real value : gradient)
      squares += static_cast<double>(value) * static_cast<double>(value);
    const double norm = std::sqrt(squares), clip = std::min(1.0, kMostNorm / (norm + 1e-12));
    ++steps;
    const double unbias1 = 1 / (1 - std::pow(kBeta1, steps)), unbias2 = 1 / (1 - std::pow(kBeta2, steps));
    for (const Part &part : parts) {
      const double decay = part.deviation != 0 ? kDecay : 0; // factors of norms are not drawn to 0
      for (std::int64_t at = part.begin; at < part.begin + part.count; ++at) {
        const auto i = static_cast<std::size_t>(at);
        const Real g = gradient[i] * static_cast<Real>(clip);
        first[i] += static_cast<Real>(1 - kBeta1) * (g - first[i]);
        second[i] += static_cast<Real>(1 - kBeta2) * (g * g - second[i]);
        const Real mean = first[i] * static_cast<Real>(unbias1), square = second[i] * static_cast<Real>(unbias2);
        parameters[i] -= static_cast<Real>(rate) * (mean / (std::sqrt(square) + static_cast<Real>(kEpsilon)) +
                                                    static_cast<Real>(decay) * parameters[i]);
      }
    }
    return norm;
  }

private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.98, kEpsilon = 1e-8, kDecay = 0.1, kMostNorm = 1;
  std::vector<Part> parts;
  std::vector<Real> first, second; // running means of gradients and of their squares
  int steps = 0;
};

} // namespace example
