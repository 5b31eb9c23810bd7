// Makes a plot from the JSON of one run. Its object `figure` says what is drawn, with a point for each of `results`:
//
//   {"title": TEXT, "x": {"title": TEXT, "field": NAME}, "y": {"title": TEXT},
//    "series": [{"name": TEXT, "field": NAME}, ...], "guides": [{"name": TEXT, "value": NUMBER}, ...]}
//
// Both axes are linear. A guide is a horizontal line. A result without one of the two fields has no point.
// Thread-safety: figure.h has only pure functions.
#pragma once

#include "tools/render_tables/tables.h"

#include <string>

namespace nsa::tables {

// Returns the title, for readers who do not see the figure.
std::string figureTitle(const Json &report);
// Returns the text of an SVG file.
std::string figureFile(const Json &report);

} // namespace nsa::tables
