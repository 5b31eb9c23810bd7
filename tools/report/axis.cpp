#include "tools/report/axis.h"

#include "tools/report/markup.h"

#include <algorithm>
#include <cstdio>

namespace nsa::report {
namespace {

// The smallest of 1, 2 and 5 times a power of 10 that divides a length into seven parts or fewer.
double roundUnit(double length) {
  const double least = length / 7, power = std::pow(10.0, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9))
      return factor * power;
  return 10 * power;
}

} // namespace

bool Axis::include(double value) {
  if (!canShow(value))
    return false;
  const double at = toScale(value);
  low = isEmpty() ? at : std::min(low, at);
  high = std::max(high, at);
  return true;
}

void Axis::finish() {
  if (isEmpty()) {
    low = 0;
    high = 1;
  }
  if (scale == Scale::kLinear)
    unit = roundUnit(high > low ? high - low : std::max(std::abs(high), 1.0));
  low = std::floor(low / unit + 1e-9) * unit;
  high = std::ceil(high / unit - 1e-9) * unit;
  if (high <= low) {
    low -= unit;
    high += unit;
  }
}

double Axis::toScale(double value) const {
  if (scale == Scale::kLinear)
    return value;
  return scale == Scale::kBinary ? std::log2(value) : std::log10(value);
}

double Axis::fromScale(double value) const {
  if (scale == Scale::kLinear)
    return value;
  return scale == Scale::kBinary ? std::exp2(value) : std::pow(10.0, value);
}

double Axis::place(double value) const { return (toScale(value) - low) / (high - low); }

std::string Axis::textOf(double value) const {
  if (scale == Scale::kLinear) { // with the decimals that tell a line from the next
    char text[64];
    const double decimals = std::clamp(std::ceil(-std::log10(unit) - 1e-9), 0.0, 15.0);
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(decimals), value);
    return text;
  }
  if (scale == Scale::kBinary && value >= 1024 && std::fmod(value, 1024) == 0)
    return value >= 1048576 && std::fmod(value, 1048576) == 0 ? numberText(value / 1048576) + "M"
                                                              : std::to_string(static_cast<long>(value / 1024)) + "K";
  if (std::abs(value) >= 1000 && std::abs(value) < 1e6)
    return std::to_string(std::lround(value));
  return numberText(value);
}

std::vector<Axis::Tick> Axis::ticks(size_t most) const {
  const long units = std::lround((high - low) / unit), lines = static_cast<long>(std::max<size_t>(most, 1));
  const long step = std::max(1L, (units + lines - 1) / lines);
  std::vector<Tick> ticks;
  for (long at = 0; at <= units; at += step) {
    // + 0.0: the line of -0 is 0
    const double value = fromScale((std::round(low / unit) + static_cast<double>(at)) * unit + 0.0);
    ticks.push_back({value, textOf(value)});
  }
  return ticks;
}

} // namespace nsa::report
