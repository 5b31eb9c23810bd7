#include "tools/nsa/tune/tune_report.h"

#include "tools/nsa/command/command.h"
#include "tools/report/markup.h"

#include <algorithm>
#include <map>
#include <set>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;
using report::Axis;
using report::Plot;

// Kernels that differ in their length alone: a plot.
std::string lineKey(const Json &kernel) {
  std::string key;
  for (const char *name : {"heads", "call", "dtype", "layout", "role"})
    key += fieldText(kernel, name) + " ";
  return key + std::to_string(kernel.value("page_size", 0)) + " " + std::to_string(kernel.value("batch", 0));
}

std::string titleOf(const Json &kernel) {
  const int page = kernel.value("page_size", 0), batch = kernel.value("batch", 1);
  return fieldText(kernel, "heads") + " " + fieldText(kernel, "call") + " " + fieldText(kernel, "dtype") +
         (fieldText(kernel, "layout") == "packed" ? " packed" : "") +
         (page ? " pages of " + std::to_string(page) : "") + (batch > 1 ? ", batch " + std::to_string(batch) : "") +
         ": " + fieldText(kernel, "role");
}

bool isSmaller(const Json &kernel) { return !fieldText(kernel, "cut").empty(); }

std::string pointText(const Json &kernel, const Json &candidate) {
  std::string line = std::to_string(kernel.value("seqlen_k", 0)) +
                     " tokens: " + millisecondsText(candidate.value("milliseconds", 0.0)) + ", " +
                     fieldText(candidate, "template") + " " + fieldText(candidate, "config");
  if (isSmaller(kernel))
    line += ", " + fieldText(kernel, "cut");
  return line;
}

// A role may be another operator's from some length on: then its lines name that too.
std::string variantOf(const Json &kernel, const Json &candidate, bool namesOperator) {
  return (namesOperator ? fieldText(kernel, "operator") + ": " : "") + fieldText(candidate, "template");
}

// Where the engine goes over from one way to compute to another.
void addMarks(Plot &plot, const std::vector<const Json *> &kernels, const Json &thresholds) {
  std::set<std::string> marked;
  for (const Json *kernel : kernels)
    for (const Json &threshold : thresholds)
      if (kernel->contains("route") && (*kernel)["route"].value("family", "") == fieldText(threshold, "family") &&
          (*kernel)["route"].value("name", "") == fieldText(threshold, "name") &&
          fieldText(*kernel, "device") == fieldText(threshold, "device") &&
          marked.insert(fieldText(threshold, "name")).second) {
        if (threshold.value("never", false))
          plot.setNote(fieldText(threshold, "name") + ": never");
        else
          plot.mark({threshold.value("threshold", 0.0), fieldText(threshold, "name")});
      }
}

Plot timePlot(const std::vector<const Json *> &kernels, const Json &thresholds) {
  const Json &one = *kernels.front();
  // A record of decode's kernels does not have the timed lengths, so such a plot shows the time of a run.
  const bool isCut =
      std::ranges::any_of(kernels, [](const Json *kernel) { return isSmaller(*kernel) && kernel->contains("timed"); });
  const bool ofKeys = fieldText(one, "operator") == "compress"; // it sees no query
  const bool namesOperator = std::ranges::any_of(
      kernels, [&](const Json *kernel) { return fieldText(*kernel, "operator") != fieldText(one, "operator"); });
  Plot plot(titleOf(one), Axis("tokens", Axis::Scale::kBinary),
            Axis(isCut ? ofKeys ? "ns per token" : "ns per query" : "ms", Axis::Scale::kDecimal));
  std::map<std::string, Plot::Series> series;
  for (const Json *kernel : kernels)
    for (const Json &candidate : (*kernel)["templates"]) {
      const Json &shape = kernel->contains("timed") ? (*kernel)["timed"] : *kernel;
      const double rows = shape.value("batch", 1.0) * shape.value(ofKeys ? "seqlen_k" : "seqlen_q", 1.0);
      const double milliseconds = candidate.value("milliseconds", 0.0);
      const std::string name = variantOf(*kernel, candidate, namesOperator);
      Plot::Series &line = series[name];
      line.name = name;
      line.points.push_back({.x = kernel->value("seqlen_k", 0.0),
                             .y = isCut ? milliseconds * 1e6 / rows : milliseconds,
                             .text = pointText(*kernel, candidate),
                             .isHollow = isSmaller(*kernel)});
    }
  for (auto &[name, line] : series) {
    std::ranges::sort(line.points, {}, &Plot::Point::x);
    plot.add(std::move(line));
  }
  addMarks(plot, kernels, thresholds);
  return plot;
}

// Achieved speed against operations for each byte; kernels that multiply nothing have no place on it.
void addRoofline(std::vector<Plot> &plots, const std::vector<const Json *> &kernels, const std::string &dtype,
                 const Json *roof) {
  std::map<std::string, Plot::Series> series;
  double least = 1e300, most = 0;
  for (const Json *kernel : kernels) {
    if (!kernel->contains("timed"))
      continue;
    const double flops = (*kernel)["timed"].value("flops", 0.0), bytes = (*kernel)["timed"].value("bytes", 0.0);
    const double milliseconds = (*kernel)["winner"].value("milliseconds", 0.0);
    if (fieldText(*kernel, "dtype") != dtype || flops <= 0 || bytes <= 0 || milliseconds <= 0)
      continue;
    const double intensity = flops / bytes, teraflops = flops / milliseconds * 1e-9;
    least = std::min(least, intensity);
    most = std::max(most, intensity);
    Plot::Series &dots = series[fieldText(*kernel, "operator")];
    dots.name = fieldText(*kernel, "operator");
    dots.isLine = false;
    dots.points.push_back({.x = intensity,
                           .y = teraflops,
                           .text = titleOf(*kernel) + ", " + report::numberText(teraflops) + " TFLOP/s, " +
                                   pointText(*kernel, (*kernel)["winner"]),
                           .isHollow = isSmaller(*kernel)});
  }
  if (series.empty())
    return;
  Plot plot(dtype + ": speed of the winners", Axis("FLOP for each byte that must move", Axis::Scale::kDecimal),
            Axis("TFLOP/s", Axis::Scale::kDecimal));
  if (roof) {
    const double peak = roof->value("tflops", 0.0), bandwidth = roof->value("terabytes_per_second", 0.0);
    const double knee = peak / bandwidth;
    const double left = std::min(least, knee / 4), right = std::max(most, knee * 4);
    Plot::Series line{.name =
                          "roof " + report::numberText(peak) + " TFLOP/s, " + report::numberText(bandwidth) + " TB/s",
                      .points = {{left, left * bandwidth, ""}, {knee, peak, ""}, {right, peak, ""}},
                      .hasDots = false,
                      .isGuide = true};
    plot.add(std::move(line));
  } else {
    plot.setNote("The roof of this device was not measured.");
  }
  for (auto &[name, dots] : series)
    plot.add(std::move(dots));
  plots.push_back(std::move(plot));
}

} // namespace

TunePlots tunePlots(const Json &report, const std::string &device) {
  std::vector<const Json *> measured;
  std::vector<std::string> order, dtypes;
  std::map<std::string, std::vector<const Json *>> lines;
  for (const Json &kernel : report["kernels"]) {
    if (fieldText(kernel, "device") != device || !kernel.contains("winner"))
      continue;
    measured.push_back(&kernel);
    const std::string key = lineKey(kernel);
    if (!lines.contains(key))
      order.push_back(key);
    lines[key].push_back(&kernel);
    if (std::ranges::find(dtypes, fieldText(kernel, "dtype")) == dtypes.end())
      dtypes.push_back(fieldText(kernel, "dtype"));
  }
  TunePlots plots;
  const auto &devices = report["devices"];
  const auto found =
      std::ranges::find_if(devices, [&](const Json &each) { return fieldText(each, "device") == device; });
  for (const std::string &dtype : dtypes) {
    const Json *roof =
        found != devices.end() && (*found)["roofs"].contains(dtype) ? &(*found)["roofs"][dtype] : nullptr;
    addRoofline(plots.roofline, measured, dtype, roof);
  }
  for (const std::string &key : order)
    if (lines[key].size() > 1)
      plots.times.push_back(timePlot(lines[key], report["thresholds"]));
  return plots;
}

} // namespace nsa::tools
