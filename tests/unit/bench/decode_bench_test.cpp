// What the bench of decoding counts and how it sums up times; the CSV of a report with columns of its own.
#include "bench/verbs/decode_bench.h"

#include "bench/measure/bench_report.h"
#include "tests/harness/scratch.h"

#include <cstdio>

namespace nsa::bench {
namespace {

TEST(DecodeBench, ReadsAreTheGoldenOnes) {
  Spec spec; // 32/16/64/16, window 512
  for (const auto &[tokens, reads] : {std::pair(576, 1123), {1088, 1603}, {2112, 1667}, {4160, 1795}})
    EXPECT_EQ(readsOf(spec, tokens), reads) << tokens;
  // In the middle of a block, and before anything is compressed.
  EXPECT_EQ(readsOf(spec, 4161), 1795 - 63 + 0);
  EXPECT_EQ(readsOf(spec, 31), 62);
  spec.branches = kBranchWin;
  EXPECT_EQ(readsOf(spec, 4160), 512);
  spec.branches = kBranchCmp;
  EXPECT_EQ(readsOf(spec, 4160), 259);
}

TEST(DecodeBench, BytesAreOfTheKeysAndValuesOfAllGroups) {
  Spec spec;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = 192;
  spec.vDim = 128;
  spec.dtype = DType::kBf16;
  EXPECT_EQ(bytesOf(spec, 3, 576), 3.0 * 4 * 1123 * (192 + 128) * 2);
}

// A step that is slow only now and then is no step that compresses.
TEST(DecodeBench, ThePlacesOfAPeriodHaveMedians) {
  const std::vector<double> steps = {1, 1, 9, 1, 80, 9, 1, 1, 9, 1};
  const PeriodTimes times = periodTimes(steps, 3);
  EXPECT_DOUBLE_EQ(times.worst, 9);
  EXPECT_DOUBLE_EQ(times.mean, (1 + 1 + 9) / 3.0);
  EXPECT_DOUBLE_EQ(periodTimes(steps, 100).worst, 80) << "fewer steps than a period";
  EXPECT_DOUBLE_EQ(periodTimes(steps, 1).mean, 1);
}

TEST(DecodeBench, APlanMayBeForMoreTokens) {
  DecodeChoice choice;
  choice.samples = 10;
  EXPECT_EQ(choice.maximaOf(1, 100).seqlenK, 110);
  choice.maxTokens = 4096;
  EXPECT_EQ(choice.maximaOf(1, 100).seqlenK, 4096);
}

TEST(DecodeBench, EveryPartCountsForOneBranch) {
  std::vector<nsa_part_time> parts;
  double all = 0;
  for (const char *name :
       {"sequences", "append", "compress", "cmp", "scores", "rank", "select", "ascend", "sel", "win", "combine"}) {
    nsa_part_time part{};
    std::snprintf(part.name, sizeof part.name, "%s", name);
    part.milliseconds = 1 << parts.size();
    all += part.milliseconds;
    parts.push_back(part);
  }
  const BranchTimes times = branchTimes(parts);
  EXPECT_DOUBLE_EQ(times.cmp, 1e3 * (4 + 8));
  EXPECT_DOUBLE_EQ(times.sel, 1e3 * (16 + 32 + 64 + 128 + 256));
  EXPECT_DOUBLE_EQ(times.win, 1e3 * 512);
  EXPECT_DOUBLE_EQ(times.rest, 1e3 * (1 + 2 + 1024));
  EXPECT_DOUBLE_EQ(times.cmp + times.sel + times.win + times.rest, 1e3 * all);
}

TEST(BenchReport, ACsvHasTheColumnsThatWereAskedForInAFileForEachValue) {
  const test::Scratch scratch;
  Result<BenchReport> report = BenchReport::create(scratch.file("results"), "decode", {{"machine", "m"}}, {},
                                                   {.columns = {"S", "ms_total"}, .fileField = "csv"});
  ASSERT_TRUE(report) << report.status().toString();
  ASSERT_TRUE(report->add({{"csv", "decode_a"}, {"heads", "a"}, {"S", 512}, {"ms_total", 0.5}}).isOk());
  ASSERT_TRUE(report->add({{"csv", "decode_b"}, {"heads", "b"}, {"S", 512}, {"ms_total", 2.0}}).isOk());
  ASSERT_TRUE(report->add({{"csv", "decode_a"}, {"heads", "a"}, {"S", 1024}, {"ms_total", 0.75}}).isOk());
  EXPECT_EQ(scratch.read("results/decode_a.csv"), "S,ms_total\n512,0.5\n1024,0.75\n");
  EXPECT_EQ(scratch.read("results/decode_b.csv"), "S,ms_total\n512,2.0\n");
  EXPECT_FALSE(std::filesystem::exists(scratch.file("results/decode.csv")));
  EXPECT_NE(scratch.read("results/decode.json").find("\"heads\": \"b\""), std::string::npos);
}

} // namespace
} // namespace nsa::bench
