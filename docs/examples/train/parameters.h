// All parameters of the model stand in one vector, and so do their gradients: the optimiser and the comparison with the
// reference need not know what they are. Thread-safety: values.
#pragma once

#include "geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace example {

// Where a group of parameters stands in the vector.
struct Part {
  std::int64_t begin = 0, count = 0;
  double deviation = 0; // of the numbers that training begins with; 0: all of them are 1
};

struct LayerParts {
  Part attentionNorm, projection, output, mlpNorm, up, down;
};

struct Layout {
  Part embedding, finalNorm, head;
  std::array<LayerParts, kLayers> layers;
  std::int64_t count = 0;

  Layout() {
    const double residual = 1 / std::sqrt(2.0 * kLayers); // each layer adds twice to the stream of states
    embedding = matrix(kBytes, kWidth, std::sqrt(static_cast<double>(kBytes)) * 0.5);
    for (LayerParts &layer : layers) {
      layer.attentionNorm = factors();
      layer.projection = matrix(kWidth, column::kEnd, 1);
      layer.output = matrix(kQueryRow, kWidth, residual);
      layer.mlpNorm = factors();
      layer.up = matrix(kWidth, kHidden, 2);
      layer.down = matrix(kHidden, kWidth, residual);
    }
    finalNorm = factors();
    head = matrix(kWidth, kBytes, 0.1);
  }

  // Each part in the order of the vector.
  std::vector<Part> parts() const {
    std::vector<Part> all = {embedding};
    for (const LayerParts &layer : layers)
      all.insert(all.end(), {layer.attentionNorm, layer.projection, layer.output, layer.mlpNorm, layer.up, layer.down});
    all.insert(all.end(), {finalNorm, head});
    return all;
  }

private:
  Part matrix(std::int64_t from, std::int64_t to, double gain) {
    return take({count, from * to, gain / std::sqrt(static_cast<double>(from))});
  }
  Part factors() { return take({count, kWidth, 0}); }
  Part take(Part part) {
    count += part.count;
    return part;
  }
};

// The parameters that training begins with: the same for a seed on every machine, because the distributions of the
// standard library may differ from one library to the other.
inline std::vector<float> initialParameters(const Layout &layout, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> parameters(static_cast<std::size_t>(layout.count), 1.0f);
  for (const Part &part : layout.parts())
    for (std::int64_t i = part.begin; part.deviation != 0 && i < part.begin + part.count; ++i) {
      const double uniform = (static_cast<double>(random()) + 0.5) / 4294967296.0; // of variance 1/12
      parameters[static_cast<std::size_t>(i)] = static_cast<float>((uniform - 0.5) * std::sqrt(12.0) * part.deviation);
    }
  // Values are 0 at first, so each branch of attention is silent until it has learnt what to say.
  for (const LayerParts &layer : layout.layers)
    for (std::int64_t row = 0; row < kWidth; ++row)
      std::fill_n(parameters.begin() + layer.projection.begin + row * column::kEnd + column::kValueSel,
                  kBranches * kKeyRow, 0.0f);
  return parameters;
}

} // namespace example
