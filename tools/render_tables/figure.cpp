#include "tools/render_tables/figure.h"

#include "tools/report/plot.h"

#include <algorithm>

namespace nsa::tables {
namespace {

using report::Axis;
using report::Plot;

std::string textOf(const Json &from, const char *first, const char *second) {
  const auto found = from.find(first);
  return found == from.end() ? "" : found->value(second, "");
}

Plot::Series seriesOf(const Json &series, const std::string &across, const Json &results) {
  Plot::Series made;
  made.name = series.value("name", "");
  const std::string up = series.value("field", "");
  for (const Json &row : results) {
    const auto x = row.find(across), y = row.find(up);
    if (x != row.end() && y != row.end() && x->is_number() && y->is_number())
      made.points.push_back({*x, *y, numberText(*x) + ": " + numberText(*y)});
  }
  return made;
}

} // namespace

std::string figureTitle(const Json &report) { return report["figure"].value("title", ""); }

std::string figureFile(const Json &report) {
  const Json &figure = report["figure"];
  Plot plot(figureTitle(report), Axis(textOf(figure, "x", "title"), Axis::Scale::kLinear),
            Axis(textOf(figure, "y", "title"), Axis::Scale::kLinear));
  double first = 0, last = 0; // of the points of all series
  bool isEmpty = true;
  for (const Json &series : figure.value("series", Json::array())) {
    Plot::Series made = seriesOf(series, textOf(figure, "x", "field"), report["results"]);
    for (const Plot::Point &point : made.points) {
      first = isEmpty ? point.x : std::min(first, point.x);
      last = isEmpty ? point.x : std::max(last, point.x);
      isEmpty = false;
    }
    plot.add(std::move(made));
  }
  for (const Json &guide : figure.value("guides", Json::array())) {
    const double value = guide.value("value", 0.0);
    plot.add({.name = guide.value("name", ""),
              .points = {{first, value, ""}, {last, value, ""}},
              .hasDots = false,
              .isGuide = true});
  }
  return plot.file();
}

} // namespace nsa::tables
