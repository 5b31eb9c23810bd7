// A 64-bit size whose products and sums never overflow. A product or sum that does not fit into 64 bits becomes the
// largest 64-bit number, so every later comparison with a limit finds the size too large.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <limits>

namespace nsa {

// A number that is 0 or greater.
class Saturated {
public:
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  constexpr Saturated(int64_t number) : number(number) {} // NOLINT(google-explicit-constructor): every size is one
  constexpr int64_t value() const { return number; }

  friend constexpr Saturated operator*(Saturated a, Saturated b) {
    int64_t result = 0;
    return __builtin_mul_overflow(a.number, b.number, &result) ? kMost : result;
  }
  friend constexpr Saturated operator+(Saturated a, Saturated b) {
    int64_t result = 0;
    return __builtin_add_overflow(a.number, b.number, &result) ? kMost : result;
  }

private:
  int64_t number;
};

} // namespace nsa
