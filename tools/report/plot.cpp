#include "tools/report/plot.h"

#include "tools/report/style.h"

#include <cstdio>

namespace nsa::report {
namespace {

constexpr double kWidth = 560, kHeight = 340;
constexpr double kLeft = 64, kRight = 16, kBottom = 44, kTitle = 24, kLegendLine = 16;
constexpr size_t kColours = 8;
constexpr double kCharacter = 6.2; // width of one in the legend's size, on average

std::string at(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// Where the axes are, after they are complete, and what is drawn on them.
class Canvas {
public:
  Canvas(Markup &markup, const Axis &x, const Axis &y, double top) : markup(markup), x(x), y(y), top(top) {}

  double column(double value) const { return kLeft + x.place(value) * (kWidth - kLeft - kRight); }
  double row(double value) const { return kHeight - kBottom - y.place(value) * (kHeight - kBottom - top); }

  void axes() {
    for (const Axis::Tick &tick : x.ticks(9)) {
      const std::string place = at(column(tick.value));
      line(place, at(top), place, at(kHeight - kBottom), "grid");
      text(place, at(kHeight - kBottom + 16), tick.text, "middle");
    }
    for (const Axis::Tick &tick : y.ticks(6)) {
      const double place = row(tick.value);
      line(at(kLeft), at(place), at(kWidth - kRight), at(place), "grid");
      text(at(kLeft - 6), at(place + 4), tick.text, "end");
    }
    text(at((kLeft + kWidth - kRight) / 2), at(kHeight - 8), x.title, "middle");
    const std::string middle = at((top + kHeight - kBottom) / 2);
    markup.element(
        "text", y.title,
        {{"x", "14"}, {"y", middle}, {"text-anchor", "middle"}, {"transform", "rotate(-90 14 " + middle + ")"}});
  }

  void line(const std::string &x1, const std::string &y1, const std::string &x2, const std::string &y2,
            const std::string &kind) {
    markup.empty("line", {{"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}, {"class", kind}});
  }
  void text(const std::string &left, const std::string &base, std::string_view content, const std::string &anchor,
            const std::string &kind = "label") {
    markup.element("text", content, {{"x", left}, {"y", base}, {"text-anchor", anchor}, {"class", kind}});
  }
  void dot(double left, double base, size_t colour, const Plot::Point &point) {
    markup.open("circle", {{"cx", at(left)},
                           {"cy", at(base)},
                           {"r", "3.6"},
                           {"class", (point.isHollow ? "hollow s" : "dot s") + std::to_string(colour % kColours)}});
    markup.element("title", point.text).close();
  }
  void path(const std::vector<std::pair<double, double>> &places, const std::string &kind) {
    std::string points;
    for (const auto &[left, base] : places)
      points += (points.empty() ? "" : " ") + at(left) + "," + at(base);
    markup.empty("polyline", {{"points", points}, {"class", kind}});
  }

private:
  Markup &markup;
  const Axis &x, &y;
  double top;
};

} // namespace

void Plot::draw(Markup &markup, const std::string &style) const {
  Axis across = x, up = y;
  std::vector<Series> shown = list;
  for (Series &series : shown) {
    std::erase_if(series.points, [&](const Point &p) { return !x.canShow(p.x) || !y.canShow(p.y); });
    for (const Point &point : series.points) {
      across.include(point.x);
      up.include(point.y);
    }
  }
  std::erase_if(shown, [](const Series &series) { return series.points.empty(); });
  across.finish();
  up.finish();

  // Names in rows above the axes, each behind its colour.
  struct Entry {
    double left;
    size_t row;
  };
  std::vector<Entry> legend;
  double left = kLeft;
  size_t row = 0;
  for (const Series &series : shown) {
    const double width = 26 + kCharacter * static_cast<double>(series.name.size()) + 14;
    if (left > kLeft && left + width > kWidth - kRight) {
      left = kLeft;
      ++row;
    }
    legend.push_back({left, row});
    left += series.isGuide ? 0 : width;
  }
  Canvas canvas(markup, across, up, kTitle + kLegendLine * static_cast<double>(row + 1) + 8);
  const std::string box = "0 0 " + at(kWidth) + " " + at(kHeight);
  markup.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"}, {"viewBox", box}, {"role", "img"}});
  markup.element("title", title);
  if (!style.empty())
    markup.open("style").raw(style).close();
  canvas.text(at(kLeft), "16", title, "start", "heading");
  canvas.axes();

  for (size_t i = 0, colour = 0; i < shown.size(); ++i) {
    const Series &series = shown[i];
    std::vector<std::pair<double, double>> places;
    for (const Point &point : series.points)
      places.emplace_back(canvas.column(point.x), canvas.row(point.y));
    if (series.isGuide) {
      canvas.path(places, "guide");
      const auto &[endLeft, endBase] = places.back();
      canvas.text(at(endLeft - 4), at(endBase - 5), series.name, "end", "quiet");
      continue;
    }
    const std::string number = std::to_string(colour % kColours);
    if (series.isLine && places.size() > 1)
      canvas.path(places, "line s" + number);
    for (size_t p = 0; series.hasDots && p < places.size(); ++p)
      canvas.dot(places[p].first, places[p].second, colour, series.points[p]);
    const double base = kTitle + kLegendLine * static_cast<double>(legend[i].row) + 8;
    if (series.isLine)
      canvas.path({{legend[i].left, base - 4}, {legend[i].left + 20, base - 4}}, "line s" + number);
    if (series.hasDots)
      canvas.dot(legend[i].left + 10, base - 4, colour, {.text = series.name});
    canvas.text(at(legend[i].left + 26), at(base), series.name, "start");
    ++colour;
  }
  for (const Mark &mark : marks) {
    const double share = across.place(mark.x); // no number where no axis can show the mark
    if (!(share >= 0 && share <= 1))
      continue;
    const std::string place = at(canvas.column(mark.x));
    canvas.line(place, at(kTitle + kLegendLine * static_cast<double>(row + 1) + 8), place, at(kHeight - kBottom),
                "mark");
    // To the left of one that stands at the right end.
    const bool isRight = share > 0.7;
    canvas.text(at(canvas.column(mark.x) + (isRight ? -4 : 4)), at(kHeight - kBottom - 6), mark.text,
                isRight ? "end" : "start", "quiet");
  }
  markup.close();
}

std::string Plot::svg() const {
  Markup markup;
  draw(markup.open("figure"), "");
  if (!note.empty())
    markup.element("figcaption", note);
  return markup.take();
}

std::string Plot::file() const {
  Markup markup;
  draw(markup, plotStyle() + "svg { background: var(--paper); }\n");
  return markup.take() + "\n";
}

} // namespace nsa::report
