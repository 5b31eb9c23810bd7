#include "tools/report/style.h"

#include <string_view>

namespace nsa::report {
namespace {

// Colours that colour-blind readers tell apart (Okabe and Ito).
constexpr std::string_view kPlotStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --quiet: #626a73; --rule: #d9dde2; --bad: #b3261e;
  --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #b58900; --s5: #56b4e9;
  --s6: #7f4f24; --s7: #6a3d9a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #14171a; --quiet: #9aa3ad; --rule: #343a41;
  --bad: #ff8a80; --s0: #4aa8e0; --s1: #ff8c42; --s2: #37c79b; --s3: #e59fc5; --s4: #e0b83e;
  --s5: #8fd0f5; --s6: #c79a6b; --s7: #b79be0; } }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg text.heading { font-size: 13px; font-weight: 600; } svg text.quiet { fill: var(--quiet); }
.grid { stroke: var(--rule); stroke-width: 1; } .mark { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 3; }
.guide { stroke: var(--quiet); stroke-width: 1.5; fill: none; } .line { fill: none; stroke-width: 2; }
.hollow { fill: var(--paper); stroke-width: 1.8; }
)";

} // namespace

std::string plotStyle() {
  constexpr std::string_view kDashes[] = {"none", "7 3", "2 3", "9 3 2 3", "none", "7 3", "2 3", "9 3 2 3"};
  std::string style(kPlotStyle);
  for (size_t i = 0; i < std::size(kDashes); ++i) {
    const std::string name = "s" + std::to_string(i);
    style += ".line." + name + " { stroke: var(--" + name + "); stroke-dasharray: " + std::string(kDashes[i]) +
             "; } .dot." + name + " { fill: var(--" + name + "); } .hollow." + name + " { stroke: var(--" + name +
             "); }\n";
  }
  return style;
}

} // namespace nsa::report
