// The CSV of a decoding bench: what its table says, and every fault that a file may have.
#include "bench/verbs/decode_summary.h"

#include <gtest/gtest.h>

namespace nsa::bench {
namespace {

const std::string kHeader = "S,ms_total,ms_cmp,ms_sel,ms_win,reads_actual,reads_expected\n";

void expectFault(const std::string &csv, const std::string &text) {
  const Result<nlohmann::ordered_json> summary = summarizeDecode("decode.csv", csv);
  ASSERT_FALSE(summary) << csv;
  EXPECT_EQ(summary.status().code(), ErrorCode::kInvalidArgument) << csv;
  EXPECT_NE(summary.status().toString().find(text), std::string::npos) << csv << "\n" << summary.status().toString();
}

TEST(DecodeSummary, SharesAndReads) {
  // The order of columns is the file's, others are passed over, and lines may end as on another system.
  const Result<nlohmann::ordered_json> summary =
      summarizeDecode("decode.csv", "reads_expected, S,note,ms_total,ms_cmp,ms_sel,ms_win,reads_actual\r\n"
                                    "1571,512,first,8.0,2.0,4.0,1.0,1123\r\n"
                                    "\r\n"
                                    "1603,1024,\"x\",10,5,2.5,1,1603\r\n");
  ASSERT_TRUE(summary) << summary.status().toString();
  const nlohmann::ordered_json &rows = (*summary)["results"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["S"], 512);
  EXPECT_EQ(rows[0]["ms_total"], 8.0);
  EXPECT_EQ(rows[0]["percent_cmp"], 25.0);
  EXPECT_EQ(rows[0]["percent_sel"], 50.0);
  EXPECT_EQ(rows[0]["percent_win"], 12.5);
  EXPECT_EQ(rows[0]["reads"], "1123/1571");
  EXPECT_EQ(rows[0]["reads_decode"], "-/-") << "the file does not have it";
  EXPECT_EQ(rows[1]["reads"], "1603/1603");
}

TEST(DecodeSummary, ReadsOfDecodingAloneWhereTheFileHasThem) {
  const Result<nlohmann::ordered_json> summary =
      summarizeDecode("decode.csv", "S,ms_total,ms_cmp,ms_sel,ms_win,reads_actual,reads_expected,reads_actual_decode,"
                                    "reads_expected_decode\n512,8,2,4,1,1123,1571,99,98\n");
  ASSERT_TRUE(summary) << summary.status().toString();
  EXPECT_EQ((*summary)["results"][0]["reads_decode"], "99/98");
}

TEST(DecodeSummary, FaultsAreNamedWithTheirPlace) {
  expectFault("", "its first line must name the column S once");
  expectFault("512,1,1,1,1,1,1\n", "must name the column S once");
  expectFault("S,ms_total,ms_cmp,ms_sel,reads_actual,reads_expected\n1,1,1,1,1,1\n", "the column ms_win once");
  expectFault("S,S,ms_total,ms_cmp,ms_sel,ms_win,reads_actual,reads_expected\n", "the column S once");
  expectFault("S,ms_total,ms_cmp,ms_sel,ms_win,reads_actual,reads_expected,reads_actual_decode,reads_actual_decode\n",
              "the column reads_actual_decode at most once");
  expectFault(kHeader, "decode.csv");
  expectFault(kHeader, "must have a row below its first line");
  expectFault(kHeader + "512,1,1,1,1,1\n", "decode.csv:2");
  expectFault(kHeader + "512,1,1,1,1,1\n", "must have 7 cells");
  expectFault(kHeader + "512,1,1,1,1,1,\n", "decode.csv:2 reads_expected");
  expectFault(kHeader + "512,8,2,4,1,1123,1571\n\n512,8,fast,4,1,1123,1571\n", "decode.csv:4 ms_cmp = fast");
  expectFault(kHeader + "512,8,2 ms,4,1,1123,1571\n", "must be a number from 0 on");
  expectFault(kHeader + "512,8,nan,4,1,1123,1571\n", "must be a number from 0 on");
  expectFault(kHeader + "512,8,-2,4,1,1123,1571\n", "must be a number from 0 on");
  expectFault(kHeader + "512,8,2,4,1e999,1123,1571\n", "must be a number from 0 on");
  expectFault(kHeader + "512,0,2,4,1,1123,1571\n", "must be greater than 0");
  expectFault(kHeader + "512,8,2,4,1,1123.5,1571\n", "must be a whole number");
  expectFault(kHeader + "1e300,8,2,4,1,1123,1571\n", "must be a whole number below");
}

} // namespace
} // namespace nsa::bench
