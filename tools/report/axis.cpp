#include "tools/report/axis.h"

#include "tools/report/markup.h"

#include <algorithm>

namespace nsa::report {

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
  low = std::floor(low + 1e-9);
  high = std::ceil(high - 1e-9);
  if (high == low) {
    low -= 1;
    high += 1;
  }
}

double Axis::toScale(double value) const { return scale == Scale::kBinary ? std::log2(value) : std::log10(value); }

double Axis::fromScale(double value) const {
  return scale == Scale::kBinary ? std::exp2(value) : std::pow(10.0, value);
}

double Axis::place(double value) const { return (toScale(value) - low) / (high - low); }

std::string Axis::textOf(double value) const {
  if (scale == Scale::kBinary && value >= 1024 && std::fmod(value, 1024) == 0)
    return value >= 1048576 && std::fmod(value, 1048576) == 0 ? numberText(value / 1048576) + "M"
                                                              : std::to_string(static_cast<long>(value / 1024)) + "K";
  if (std::abs(value) >= 1000 && std::abs(value) < 1e6)
    return std::to_string(std::lround(value));
  return numberText(value);
}

std::vector<Axis::Tick> Axis::ticks(size_t most) const {
  const double step = std::max(1.0, std::ceil((high - low) / static_cast<double>(std::max<size_t>(most, 1))));
  std::vector<Tick> ticks;
  for (double at = low; at <= high + step * 1e-6; at += step)
    ticks.push_back({fromScale(at), textOf(fromScale(at))});
  return ticks;
}

} // namespace nsa::report
