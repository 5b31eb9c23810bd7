// Draws numbers of the standard normal distribution with the polar method of Marsaglia and Bray (1964), two from each
// 64 random bits. The distributions of libstdc++ compute two logarithms in long double for each number if clang
// compiles them, which was a quarter of the time of the tests of gradients.
// Thread-safety: values.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>

namespace nsa::tools {

class StandardNormal {
public:
  float operator()(std::mt19937_64 &random) {
    if (const std::optional<float> kept = std::exchange(second, std::nullopt))
      return *kept;
    for (;;) {
      const uint64_t bits = random();
      const float x = fraction(static_cast<uint32_t>(bits >> 32)), y = fraction(static_cast<uint32_t>(bits));
      const float square = x * x + y * y;
      if (square >= 1 || square == 0)
        continue;
      const float length = std::sqrt(-2 * std::log(square) / square);
      second = y * length;
      return x * length;
    }
  }

private:
  // In [-1, 1].
  static float fraction(uint32_t bits) { return static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-31f; }

  std::optional<float> second;
};

} // namespace nsa::tools
