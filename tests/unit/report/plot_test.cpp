// What a plot draws: every point that can be drawn, names, marks, and nothing that is not XML.
#include "tests/harness/xml_check.h"
#include "tools/report/plot.h"

#include <gtest/gtest.h>
#include <limits>

namespace nsa::report {
namespace {

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

Plot emptyPlot(const std::string &title = "title") {
  return Plot(title, Axis("tokens", Axis::Scale::kBinary), Axis("ms", Axis::Scale::kDecimal));
}

TEST(Plot, DrawsEachPointWithItsText) {
  Plot plot = emptyPlot();
  plot.add({.name = "attention", .points = {{1024, 0.5, "first"}, {2048, 1, "second"}, {4096, 2, "third", true}}});
  plot.add({.name = "row_attention", .points = {{1024, 0.7, "fourth"}}});
  const std::string svg = plot.svg();
  EXPECT_EQ(test::XmlCheck::problemOf(svg), "");
  for (const char *text : {"first", "second", "third", "fourth"})
    EXPECT_EQ(countOf(svg, "<title>" + std::string(text) + "</title>"), 1u) << text;
  EXPECT_EQ(countOf(svg, "class=\"hollow s0\""), 1u);
  EXPECT_EQ(countOf(svg, "class=\"dot s1\""), 2u) << "one point, and the one of the legend";
  EXPECT_EQ(countOf(svg, "class=\"line s0\""), 2u) << "through the points, and in the legend";
  EXPECT_EQ(countOf(svg, ">row_attention</text>"), 1u);
}

TEST(Plot, LeavesOutWhatHasNoPlace) {
  Plot plot = emptyPlot();
  plot.add({.name = "some",
            .points = {{1024, 0, "zero"},
                       {0, 1, "nowhere"},
                       {2048, std::numeric_limits<double>::quiet_NaN(), "none"},
                       {2048, 3, "kept"}}});
  plot.add({.name = "nothing", .points = {{1024, -1, "negative"}}});
  const std::string svg = plot.svg();
  EXPECT_EQ(test::XmlCheck::problemOf(svg), "");
  EXPECT_EQ(countOf(svg, "<circle"), 2u);
  EXPECT_NE(svg.find(">kept<"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find(">nothing<"), std::string::npos);
}

TEST(Plot, MarksOnlyWhereItReaches) {
  Plot plot = emptyPlot();
  plot.add({.name = "x", .points = {{1024, 1, ""}, {8192, 2, ""}}});
  plot.mark({2048, "from here on"});
  plot.mark({1 << 20, "out of sight"});
  plot.mark({0, "never"});
  const std::string svg = plot.svg();
  EXPECT_EQ(countOf(svg, "class=\"mark\""), 1u);
  EXPECT_NE(svg.find(">from here on<"), std::string::npos);
  EXPECT_EQ(svg.find("out of sight"), std::string::npos);
}

TEST(Plot, AGuideStandsBehindWithItsName) {
  Plot plot = emptyPlot();
  plot.add({.name = "roof", .points = {{1024, 1, ""}, {8192, 4, ""}}, .hasDots = false, .isGuide = true});
  plot.add({.name = "dots", .points = {{2048, 1, "a dot"}}, .isLine = false});
  const std::string svg = plot.svg();
  EXPECT_EQ(countOf(svg, "class=\"guide\""), 1u);
  EXPECT_EQ(countOf(svg, "class=\"dot s0\""), 2u) << "a guide takes no colour";
  EXPECT_EQ(countOf(svg, "class=\"line"), 0u);
}

TEST(Plot, TextsAreEscaped) {
  Plot plot = emptyPlot("a < b & \"c\"");
  plot.add({.name = "<script>", .points = {{1, 1, "x > 'y'"}}});
  plot.setNote("1 & 2");
  const std::string svg = plot.svg();
  EXPECT_EQ(test::XmlCheck::problemOf(svg), "");
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
}

TEST(Plot, ALinearPlotDrawsZeroAndLess) {
  Plot plot("title", Axis("x", Axis::Scale::kLinear), Axis("y", Axis::Scale::kLinear));
  plot.add({.name = "some", .points = {{0, -1, "first"}, {-2, 0, "second"}}});
  EXPECT_EQ(countOf(plot.svg(), "<circle"), 3u) << "two points, and the one of the legend";
}

TEST(Plot, AFileHasItsOwnColours) {
  Plot plot = emptyPlot();
  plot.add({.name = "x", .points = {{1024, 1, ""}, {8192, 2, ""}}});
  plot.setNote("below");
  const std::string file = plot.file();
  EXPECT_EQ(test::XmlCheck::problemOf(file), "");
  EXPECT_TRUE(file.starts_with("<svg ")) << file;
  for (const char *rule : {"<style>", "--paper: #ffffff", "prefers-color-scheme: dark", ".line.s0 {"})
    EXPECT_EQ(countOf(file, rule), 1u) << rule;
  EXPECT_EQ(countOf(file, "below"), 0u) << "a note stands below the plot, in the page";
  EXPECT_EQ(countOf(plot.svg(), "<style>"), 0u) << "a page has the colours of all its plots";
}

TEST(Plot, AnEmptyOneIsStillDrawn) { EXPECT_EQ(test::XmlCheck::problemOf(emptyPlot().svg()), ""); }

} // namespace
} // namespace nsa::report
