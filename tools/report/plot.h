// Makes a plot as SVG, for a page or for a file: lines and dots over two axes, with vertical lines that have a text. A
// plot takes the colours of style.h and can be read in grey, because each series has its own dash and dot. Pointing at
// a dot shows its values. Thread-safety: values.
#pragma once

#include "tools/report/axis.h"
#include "tools/report/markup.h"

#include <string>
#include <vector>

namespace nsa::report {

class Plot {
public:
  struct Point {
    double x = 0, y = 0;
    std::string text;      // shown when the dot is pointed at
    bool isHollow = false; // tells the dot apart from the others
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
    bool isLine = true, hasDots = true;
    bool isGuide = false; // drawn behind the others in grey, with its name at its end
  };
  struct Mark {
    double x = 0;
    std::string text;
  };

  Plot(std::string title, Axis x, Axis y) : title(std::move(title)), x(std::move(x)), y(std::move(y)) {}
  void add(Series series) { list.push_back(std::move(series)); }
  // Adds a vertical line with a text. A vertical line is drawn only within the range of the points.
  void mark(Mark mark) { marks.push_back(std::move(mark)); }
  // A text below the plot.
  void setNote(std::string text) { note = std::move(text); }
  // The plot and its note as an element of a page (page.h), which has the colours.
  std::string svg() const;
  // The plot without its note as an SVG file, which has its own colours and its own paper.
  std::string file() const;

private:
  void draw(Markup &markup, const std::string &style) const;

  std::string title, note;
  Axis x, y;
  std::vector<Series> list;
  std::vector<Mark> marks;
};

} // namespace nsa::report
