// A plot as inline SVG: lines and dots over two axes, with vertical marks. Drawn with the page's own colours, readable
// in grey (each series has a dash and a dot of its own); each point tells its values when pointed at.
// Thread-safety: values.
#pragma once

#include "tools/report/axis.h"

#include <string>
#include <vector>

namespace nsa::report {

class Plot {
public:
  struct Point {
    double x = 0, y = 0;
    std::string text;      // what pointing at it tells
    bool isHollow = false; // set apart from the others
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
    bool isLine = true, hasDots = true;
    bool isGuide = false; // behind the others, in grey, with its name at its end
  };
  struct Mark {
    double x = 0;
    std::string text;
  };

  Plot(std::string title, Axis x, Axis y) : title(std::move(title)), x(std::move(x)), y(std::move(y)) {}
  void add(Series series) { list.push_back(std::move(series)); }
  // A vertical line with a text, where it lies within the points.
  void mark(Mark mark) { marks.push_back(std::move(mark)); }
  // Below the plot.
  void setNote(std::string text) { note = std::move(text); }
  std::string svg() const;

private:
  std::string title, note;
  Axis x, y;
  std::vector<Series> list;
  std::vector<Mark> marks;
};

} // namespace nsa::report
