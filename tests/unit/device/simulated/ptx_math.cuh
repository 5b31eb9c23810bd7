// Twin of templates/device/ptx_math.cuh.
#pragma once

#include "types.cuh"

#include <cmath>

namespace nsa {

inline float infinity() { return INFINITY; }
inline float not_a_number() { return NAN; }
inline float exp2_approx(float x) { return std::exp2(x); }
inline float log2_approx(float x) { return std::log2(x); }
inline float max_number(float a, float b) { return std::fmax(a, b); }
inline float min_number(float a, float b) { return std::fmin(a, b); }
inline float max_or_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); }
inline float min_or_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b); }

} // namespace nsa
