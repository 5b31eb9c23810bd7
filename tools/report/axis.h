// One axis of a plot: from values to places, and the values worth a line.
// Thread-safety: values.
#pragma once

#include <string>
#include <vector>

namespace nsa::report {

class Axis {
public:
  enum class Scale { kLinear, kBinary, kDecimal }; // the last two logarithmic, with lines at powers of 2 or 10

  Axis(std::string title, Scale scale) : title(std::move(title)), scale(scale) {}

  // Widens the axis. What a logarithmic axis cannot show (0 and below, no number) is refused: false.
  bool include(double value);
  bool isEmpty() const { return !(low <= high); }
  // Widens it to whole steps, so that the first and the last line stand at the ends.
  void finish();

  // 0 at the low end, 1 at the high one.
  double place(double value) const;
  struct Tick {
    double value;
    std::string text;
  };
  // At most about so many.
  std::vector<Tick> ticks(size_t most) const;

  const std::string title;

private:
  double toScale(double value) const;
  double fromScale(double value) const;
  std::string textOf(double value) const;

  Scale scale;
  double low = 1, high = 0; // on the scale; nothing yet
};

} // namespace nsa::report
