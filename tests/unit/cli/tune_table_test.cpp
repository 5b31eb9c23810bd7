// The table of a tuning has the fastest candidate first, says why a slower one won, and how much of the call was timed.
#include "tools/nsa/tune/tune_report.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

nlohmann::json candidate(const std::string &config, const std::string &outcome, double milliseconds,
                         const std::string &detail = "") {
  return {{"template", "attention"},
          {"config", config},
          {"outcome", outcome},
          {"milliseconds", milliseconds},
          {"ratio_to_default", milliseconds / 2},
          {"rounds", 39},
          {"detail", detail}};
}

nlohmann::json report() {
  return {{"problem", "window dtype=bf16"},
          {"device", "cpu"},
          {"compiled", 4},
          {"measured", 3},
          {"rejected", 1},
          {"milliseconds", 1500.0},
          {"candidates",
           {candidate("a=1", "measured", 2), candidate("a=2", "rejected", 0, "differs"),
            candidate("a=3", "winner", 1.01, "within 1 % of the fastest, and predicted to be cheaper"),
            candidate("a=4", "failed", 0), candidate("a=5", "measured", 1, "may be as fast as the winner"),
            candidate("", "pruned", 0, "7 candidates not compiled: out of budget")}},
          {"tie", true}};
}

TEST(TuneTable, StandsInTheOrderOfMeasuredTime) {
  EXPECT_EQ(tuneTable(report()),
            "window dtype=bf16\n"
            "on cpu: 4 compiled, 3 measured, 1 rejected in 1500 ms\n"
            "outcome          median  x default  rounds  candidate\n"
            "measured        1.00 ms      0.500      39  attention a=5: may be as fast as the winner\n"
            "winner          1.01 ms      0.505      39  attention a=3: within 1 % of the fastest, and predicted to "
            "be cheaper\n"
            "measured        2.00 ms      1.000      39  attention a=1\n"
            "rejected              -          -      39  attention a=2: differs\n"
            "failed                -          -      39  attention a=4\n"
            "7 more were not compiled: out of budget\n"
            "Another candidate may be as fast as the winner: measuring again may choose that one.\n");
}

TEST(TuneTable, SaysHowMuchOfTheCallWasTimed) {
  nlohmann::json cut = report();
  EXPECT_EQ(tuneTable(cut).find("part of the call"), std::string::npos);
  cut["cut"] = "64 of 1024 queries timed";
  EXPECT_NE(tuneTable(cut).find("\nTimes are of a part of the call: 64 of 1024 queries timed\noutcome "),
            std::string::npos)
      << tuneTable(cut);
}

} // namespace
} // namespace nsa::tools
