// One axis of a plot: it computes where on the axis a value is drawn, and which values get a grid line.
// Thread-safety: values.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace nsa::report {

class Axis {
public:
  enum class Scale { kBinary, kDecimal }; // logarithmic, with lines at powers of 2 or 10

  Axis(std::string title, Scale scale) : title(std::move(title)), scale(scale) {}

  // Whether an axis can show the value: a finite number above 0.
  static bool canShow(double value) { return std::isfinite(value) && value > 0; }
  // Widens the axis to include a value. Returns false, and changes nothing, if an axis cannot show the value.
  bool include(double value);
  bool isEmpty() const { return !(low <= high); }
  // Widens the axis so that its first and its last grid line are at its ends.
  void finish();

  // Returns the position of a value on the axis: 0 at the low end, 1 at the high end.
  double place(double value) const;
  struct Tick {
    double value;
    std::string text;
  };
  // Returns the values that get a grid line: about `most` values or fewer.
  std::vector<Tick> ticks(size_t most) const;

  const std::string title;

private:
  double toScale(double value) const;
  double fromScale(double value) const;
  std::string textOf(double value) const;

  Scale scale;
  double low = 1, high = 0; // on the scale; empty at first
};

} // namespace nsa::report
