// When a kernel counts as slow by a record, and what is no record.
#include "bench/measure/speed_record.h"

#include "tests/harness/scratch.h"

#include <gtest/gtest.h>

namespace nsa::bench {
namespace {

using Json = nlohmann::ordered_json;

Json speedRow(const std::string &op, double timesPlain, const std::string &features = "x86-64-v3") {
  return {{"op", op}, {"features", features}, {"heads", "cpu64"}, {"tokens", 512}, {"times_plain", timesPlain}};
}
Json speedRecord(const std::vector<Json> &rows, const std::string &source = "0123456789ab") {
  return {{"machine", {{"processor", "a processor"}, {"source", source}}}, {"results", rows}};
}

class SpeedRecordTest : public testing::Test {
protected:
  static std::string fault(const Json &measured, const Json &record) {
    return compareWithRecord(measured, record, "speed.json").toString();
  }
  std::string faultOfFile(const std::string &text) const {
    folder.write("speed.json", text);
    return compareWithRecord(speedRecord({speedRow("dense", 4)}), folder.file("speed.json")).toString();
  }
  test::Scratch folder;
};

TEST_F(SpeedRecordTest, HalfTheSpeedIsTheLeast) {
  const Json record = speedRecord({speedRow("dense", 8), speedRow("sel", 2), speedRow("sel", 9, "x86-64-v4")});
  EXPECT_EQ(fault(speedRecord({speedRow("dense", 4), speedRow("sel", 40)}), record), "ok");
  EXPECT_EQ(fault(speedRecord({speedRow("sel", 1)}), record), "ok") << "the row of the same vectors counts";
  const std::string slow = fault(speedRecord({speedRow("dense", 3.99), speedRow("sel", 0.9)}), record);
  for (const char *text : {"dense on x86-64-v3 is 3.99 times as fast as the plain loop, which is less than half of the "
                           "8.00 times recorded",
                           "sel on x86-64-v3 is 0.90 times", "speed.json is of a processor, source 0123456789ab",
                           "nsa_bench_speed --results bench/results/cpu"})
    EXPECT_NE(slow.find(text), std::string::npos) << slow;
}

TEST_F(SpeedRecordTest, WhatTheRecordDoesNotKnowIsNamed) {
  const Json record = speedRecord({speedRow("dense", 8)});
  EXPECT_NE(fault(speedRecord({speedRow("dense", 8, "x86-64-v4")}), record).find("dense on x86-64-v4 has no row"),
            std::string::npos);
  Json shorter = speedRow("dense", 8);
  shorter["tokens"] = 128;
  EXPECT_NE(fault(speedRecord({shorter}), record).find("dense on x86-64-v3 has no row"), std::string::npos);
}

TEST_F(SpeedRecordTest, WhatIsNoRecordIsRefused) {
  EXPECT_EQ(faultOfFile(speedRecord({speedRow("dense", 8)}).dump()), "ok");
  for (const char *text : {"", "[]", "{", R"({"machine": {}})", R"({"machine": {}, "results": 1})",
                           R"({"machine": {}, "results": [{"op": "dense"}]})"})
    EXPECT_NE(faultOfFile(text).find("must be a file that nsa_bench_speed wrote"), std::string::npos) << text;
  EXPECT_NE(faultOfFile(speedRecord({speedRow("dense", 8)}, "0123456789ab-dirty").dump())
                .find("'0123456789ab-dirty': must be a commit"),
            std::string::npos);
  EXPECT_NE(compareWithRecord(speedRecord({}), folder.file("none.json")).toString().find("none.json cannot be read"),
            std::string::npos);
}

} // namespace
} // namespace nsa::bench
