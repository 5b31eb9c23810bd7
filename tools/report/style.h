// The colours of reports, and the rules of CSS by which plots are drawn. Thread-safety: a pure function.
#pragma once

#include <string>

namespace nsa::report {

// Text for an element `style`: the colours as variables, light or dark as the reader's system asks, and the rules for
// the classes that plot.cpp gives to its elements.
std::string plotStyle();

} // namespace nsa::report
