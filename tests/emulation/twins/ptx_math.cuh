// Twin of templates/device/ptx_math.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE float infinity() { return INFINITY; }
NSA_DEVICE float not_a_number() { return NAN; }
NSA_DEVICE float exp2_approx(float x) { return std::exp2(x); }
NSA_DEVICE float log2_approx(float x) { return std::log2(x); }
NSA_DEVICE float reciprocal_approx(float x) { return 1 / x; }
NSA_DEVICE float max_number(float a, float b) { return std::fmax(a, b); }
NSA_DEVICE float min_number(float a, float b) { return std::fmin(a, b); }
NSA_DEVICE float max_or_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); }
NSA_DEVICE float min_or_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b); }

} // namespace nsa
