#include "tools/report/table.h"

#include "tools/report/markup.h"

#include <cassert>

namespace nsa::report {
namespace {

constexpr const char *kClassOfTone[] = {"plain", "good", "bad", "quiet"};

} // namespace

void Table::add(std::vector<std::string> cells, Tone tone) {
  assert(cells.size() == columns.size());
  rows.push_back({std::move(cells), tone});
}

std::string Table::html() const {
  Markup markup;
  markup.open("div", {{"class", "wide"}}).open("table").open("thead").open("tr");
  const auto kind = [&](size_t column) { return std::string(columns[column].isNumber ? "number" : "text"); };
  for (size_t i = 0; i < columns.size(); ++i)
    markup.element("th", columns[i].title, {{"class", kind(i)}, {"title", columns[i].hint}});
  markup.close().close().open("tbody");
  for (const Row &row : rows) {
    markup.open("tr", {{"class", kClassOfTone[static_cast<size_t>(row.tone)]}});
    for (size_t i = 0; i < columns.size(); ++i)
      markup.element("td", row.cells[i], {{"class", kind(i)}});
    markup.close();
  }
  return markup.take();
}

} // namespace nsa::report
