// A page holds what was put on it, is well-formed whatever the texts are, and loads nothing.
#include "tests/harness/xml_check.h"
#include "tools/report/page.h"

#include <gtest/gtest.h>

namespace nsa::report {
namespace {

TEST(Markup, EscapesWhatXmlCannotHold) {
  EXPECT_EQ(escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escaped("tab\tline\n"), "tab\tline\n");
  EXPECT_EQ(escaped(std::string("\0\x1f", 2)), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(escaped("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  // Alone, cut, too long, a surrogate, too large, no character.
  for (const char *broken : {"\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xef\xbf\xbe"}) {
    const std::string text = escaped(std::string("x") + broken + "y");
    EXPECT_TRUE(text.starts_with("x\xef\xbf\xbd")) << text;
    EXPECT_TRUE(text.ends_with("y")) << text;
  }
}

TEST(Markup, NumbersHaveThreeDigits) {
  EXPECT_EQ(numberText(0.123456), "0.123");
  EXPECT_EQ(numberText(12), "12");
  EXPECT_EQ(numberText(12345678), "1.23e+07");
}

TEST(Page, HoldsEverythingAndLoadsNothing) {
  Page page("a < b");
  page.heading("what & why");
  page.subheading("sub");
  page.paragraph("text");
  page.warning("careful");
  page.facts({{"name", "value"}, {"<name>", "<value>"}});
  Table table({{"left"}, {"right", true, "a hint"}});
  EXPECT_TRUE(table.isEmpty());
  table.add({"x", "1"});
  table.add({"<y>", "2"}, Table::Tone::kBad);
  EXPECT_FALSE(table.isEmpty());
  page.add(table);
  page.addFolded("more", table);
  Plot plot("plot", Axis("x", Axis::Scale::kDecimal), Axis("y", Axis::Scale::kDecimal));
  plot.add({.name = "line", .points = {{0, 0, ""}, {1, 1, ""}}});
  page.add({plot, plot});
  const std::string html = page.html();
  EXPECT_EQ(test::XmlCheck::problemOf(html), "");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char *part : {"<title>a &lt; b</title>", "<h1>a &lt; b</h1>", "what &amp; why", "careful", "&lt;value&gt;",
                           "title=\"a hint\"", "<tr class=\"bad\">", "<summary>more</summary>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char *loads : {"<script", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(html.find(loads), std::string::npos) << loads;
}

} // namespace
} // namespace nsa::report
