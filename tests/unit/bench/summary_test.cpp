// README's table: which of the recorded times stand in a row.
#include "tools/render_tables/summary.h"

#include <gtest/gtest.h>

namespace nsa::tables {
namespace {

class Summary : public ::testing::Test {
protected:
  Json prefill = record("p"), decode = record("d"), startup = record("s"), peers = record("o");

  static Json record(const char *name) {
    Json made;
    made["name"] = name;
    made["results"] = Json::array();
    return made;
  }
  static void add(Json &to, const char *row) { to["results"].push_back(Json::parse(row)); }

  // The rows without the two lines of titles.
  std::string rows() const {
    const std::string text = summaryTable({&prefill, {&decode}, &startup, &peers},
                                          [](const Json &of) { return "of " + of["name"].get<std::string>(); });
    const std::string head =
        "| what | heads | head sizes | tokens | NSA Runtime | dense attention | other NSA | record |"
        "\n|---|---|---|---|---|---|---|---|\n";
    EXPECT_TRUE(text.starts_with(head)) << text;
    return text.substr(head.size());
  }
};

constexpr const char *kOwnPass = R"({"op": "nsa", "heads": "h", "query_heads": 8, "kv_heads": 2, "qk_dim": 64,
  "v_dim": 32, "tokens": 256, "implementation": "nsa default", "median_ms": 3.0})";

TEST_F(Summary, AForwardPassStandsBesideTheFastestOfItsShape) {
  add(prefill, kOwnPass);
  EXPECT_EQ(rows(), "| forward, ms | 8/2 | 64/32 | 256 | 3.00 | - | - | of p |\n") << "nothing is made up";
  add(prefill, R"({"op": "nsa", "heads": "h", "tokens": 256, "implementation": "nsa tuned", "median_ms": 2.5})");
  add(prefill, R"({"op": "dense", "heads": "h", "tokens": 256, "implementation": "a", "median_ms": 5.0})");
  add(prefill, R"({"op": "dense", "heads": "h", "tokens": 256, "implementation": "b", "median_ms": 4.0})");
  add(prefill, R"({"op": "dense", "heads": "h", "tokens": 256, "implementation": "refused", "median_ms": null})");
  add(prefill, R"({"op": "dense", "heads": "h", "tokens": 512, "implementation": "longer", "median_ms": 0.1})");
  add(peers,
      R"({"measure": "forward", "op": "nsa", "heads": "h", "tokens": 256, "implementation": "x", "median_ms": 9})");
  add(peers,
      R"({"measure": "forward", "op": "nsa", "heads": "h", "tokens": 256, "implementation": "y", "median_ms": 7})");
  add(peers,
      R"({"measure": "forward", "op": "nsa", "heads": "i", "tokens": 256, "implementation": "z", "median_ms": 1})");
  add(peers,
      R"({"measure": "decode", "op": "nsa", "heads": "h", "tokens": 256, "implementation": "z", "median_ms": 1})");
  EXPECT_EQ(rows(), "| forward, ms | 8/2 | 64/32 | 256 | 2.50 | 4.00 (b) | 7.00 (y) | of p |\n");
}

TEST_F(Summary, ADecodingStepIsInMicrosecondsAndOfItsBatch) {
  add(decode, R"({"heads": "h", "query_heads": 8, "kv_heads": 2, "qk_dim": 64, "v_dim": 32, "batch": 4, "S": 1024,
                  "ms_total": 0.0355, "us_dense": 13.5, "dense_by": "d"})");
  EXPECT_EQ(rows(), "") << "no other program was measured";
  add(peers, R"({"measure": "decode", "op": "nsa", "heads": "h", "batch": 4, "tokens": 1024, "implementation": "x",
                 "median_ms": 0.0445})");
  add(peers, R"({"measure": "decode", "op": "nsa", "heads": "h", "batch": 1, "tokens": 1024, "implementation": "one",
                 "median_ms": 0.001})");
  add(peers, R"({"measure": "decode", "op": "nsa", "heads": "h", "batch": 4, "tokens": 1050, "implementation": "far",
                 "median_ms": 0.001})");
  EXPECT_EQ(rows(), "| decoding step, batch 4, us | 8/2 | 64/32 | 1024 | 35.5 | 13.5 (d) | 44.5 (x) | of d |\n");
  peers["results"][0]["tokens"] = 1030;
  EXPECT_EQ(rows(), "| decoding step, batch 4, us | 8/2 | 64/32 | 1024 | 35.5 | 13.5 (d) | 44.5 (x) | of d |\n")
      << "the lengths differ by less than 1 %";
  add(peers, R"({"measure": "decode", "op": "nsa", "heads": "h", "batch": 4, "tokens": 1025, "implementation": "near",
                 "median_ms": 0.05})");
  add(peers,
      R"({"measure": "decode", "op": "nsa", "heads": "h", "batch": 4, "tokens": 1022, "implementation": "less near",
                 "median_ms": 0.001})");
  EXPECT_EQ(rows(), "| decoding step, batch 4, us | 8/2 | 64/32 | 1024 | 35.5 | 13.5 (d) | 50.0 (near) | of d |\n");
}

TEST_F(Summary, AStartIsWithCompiledKernels) {
  add(startup, R"({"measure": "first result, cold cache", "median_ms": 700.5})");
  add(startup, R"({"measure": "first result, warm cache", "median_ms": 160.5})");
  add(peers, R"({"measure": "startup", "cache": "cold", "op": "nsa", "implementation": "x", "median_ms": 100.0})");
  add(peers, R"({"measure": "startup", "cache": "warm", "op": "nsa", "implementation": "x", "median_ms": 2900.0})");
  add(peers, R"({"measure": "startup", "cache": "warm", "op": "dense", "implementation": "d", "median_ms": 2810.0})");
  EXPECT_EQ(rows(), "| first result of a process, ms | - | - | - | 160 | 2810 (d) | 2900 (x) | of s |\n");
}

TEST_F(Summary, ARowWithoutATimeHasADash) {
  add(decode, R"({"heads": "h", "batch": 1, "S": 64})");
  add(peers, R"({"measure": "decode", "op": "nsa", "heads": "h", "batch": 1, "tokens": 64, "implementation": "x",
                 "median_ms": 0.002})");
  add(startup, R"({"measure": "first result, warm cache", "median_ms": null})");
  EXPECT_EQ(rows(), "| decoding step, batch 1, us | -/- | -/- | 64 | - | - | 2.00 (x) | of d |\n"
                    "| first result of a process, ms | - | - | - | - | - | - | of s |\n");
}

} // namespace
} // namespace nsa::tables
