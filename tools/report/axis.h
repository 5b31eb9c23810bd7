// One axis of a plot: it computes where on the axis a value is drawn, and which values get a grid line.
// Thread-safety: values.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace nsa::report {

class Axis {
public:
  // The first two are logarithmic, with lines at powers of 2 or 10. A linear axis has lines at multiples of 1, 2 or 5
  // times a power of 10.
  enum class Scale { kBinary, kDecimal, kLinear };

  Axis(std::string title, Scale scale) : title(std::move(title)), scale(scale) {}

  // Whether the axis can show the value: a finite number, on a logarithmic axis above 0.
  bool canShow(double value) const { return std::isfinite(value) && (scale == Scale::kLinear || value > 0); }
  // Widens the axis to include a value. Returns false, and changes nothing, if the axis cannot show the value.
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
  double unit = 1;          // the distance on the scale between the nearest lines
};

} // namespace nsa::report
