// The table that a bench prints: columns in line, and nothing behind the last cell.
#include "tools/render_tables/tables.h"

#include <gtest/gtest.h>

namespace nsa::tables {
namespace {

TEST(TerminalTable, AlignsItsColumns) {
  const Json report = Json::parse(R"({
    "table": [{"title": "heads", "field": "name"}, {"title": "ms", "field": "ms"}, {"title": "note", "field": "note"}],
    "results": [{"name": "nsa192", "ms": 123.4, "note": "x"}, {"name": "mha", "ms": null}]})");
  EXPECT_EQ(terminalTable(report), "heads   ms   note\n"
                                   "nsa192  123  x\n"
                                   "mha     -    -\n");
}

} // namespace
} // namespace nsa::tables
