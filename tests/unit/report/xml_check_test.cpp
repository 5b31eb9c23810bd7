// The check that the other tests rely on sees what is broken.
#include "tests/harness/xml_check.h"

#include <gtest/gtest.h>

namespace nsa::test {
namespace {

TEST(XmlCheck, TakesWhatIsWellFormed) {
  for (const char *text : {"<a/>", "<a>x &amp; y<b c=\"d\" e=\"&quot;\"/>\n</a>\n", "<!DOCTYPE html>\n<html></html>"})
    EXPECT_EQ(XmlCheck::problemOf(text), "") << text;
}

TEST(XmlCheck, SeesWhatIsNot) {
  for (const char *text : {"", "x", "<a>", "</a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a b=c/>", "<a b=\"c/>",
                           "<a b=\"\" b=\"\"/>", "<a>&nbsp;</a>", "<a>x & y</a>", "<a b=\"&\"/>", "<a b=\"<\"/>",
                           "<a>\x01</a>", "<a", "<A/>", "<a/>text", "<script>1 < 2</script>"})
    EXPECT_NE(XmlCheck::problemOf(text), "") << text;
}

} // namespace
} // namespace nsa::test
