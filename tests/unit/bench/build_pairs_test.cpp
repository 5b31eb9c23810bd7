// Records of two builds: which rows are partners, what their ratio is, and which records must not be compared.
#include "bench/measure/build_pairs.h"
#include "tools/support/scratch_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace nsa::bench {
namespace {

using Json = nlohmann::ordered_json;

Json record(const std::string &source, const std::vector<Json> &rows, const std::string &device = "NVIDIA H200") {
  return {{"machine", {{"source", source}, {"device", {{"key", device}}}}}, {"results", rows}};
}

Json prefill(int tokens, double milliseconds) {
  return {{"op", "nsa"},
          {"heads", "nsa128"},
          {"dtype", "bf16"},
          {"tokens", tokens},
          {"implementation", "nsa default"},
          {"median_ms", milliseconds}};
}

BuildRound roundOf(const std::vector<Json> &old, const std::vector<Json> &fresh) {
  return {{{"prefill", record("aaa", old)}}, {{"prefill", record("bbb", fresh)}}};
}

TEST(BuildPairs, TheRatioIsTheMedianOfTheRounds) {
  // The machine is half as fast in the second round, which no ratio shows.
  const Result<BuildPairs> pairs = pairBuilds({roundOf({prefill(8192, 2.0)}, {prefill(8192, 2.2)}),
                                               roundOf({prefill(8192, 4.0)}, {prefill(8192, 4.0)}),
                                               roundOf({prefill(8192, 2.0)}, {prefill(8192, 2.1)})});
  ASSERT_TRUE(pairs) << pairs.status().toString();
  ASSERT_EQ(pairs->rows.size(), 1u);
  const Json &row = pairs->rows[0];
  EXPECT_EQ(row["record"], "prefill");
  EXPECT_EQ(row["what"], "nsa nsa128 bf16 tokens=8192 nsa default");
  EXPECT_EQ(row["unit"], "ms");
  EXPECT_EQ(row["rounds"], 3);
  EXPECT_DOUBLE_EQ(row["old"].get<double>(), 2.0);
  EXPECT_DOUBLE_EQ(row["new"].get<double>(), 2.2);
  EXPECT_DOUBLE_EQ(row["ratio"].get<double>(), 2.1 / 2.0);
  EXPECT_DOUBLE_EQ(row["least"].get<double>(), 1.0);
  EXPECT_DOUBLE_EQ(row["greatest"].get<double>(), 2.2 / 2.0);
  EXPECT_EQ(pairs->facts["old"], "aaa");
  EXPECT_EQ(pairs->facts["new"], "bbb");
  EXPECT_EQ(pairs->facts["rounds"], 3);
}

TEST(BuildPairs, RowsOfOneBuildAreCounted) {
  BuildRound round = roundOf({prefill(8192, 2.0)}, {prefill(8192, 2.0), prefill(16384, 4.0)});
  round.fresh["search"] = record("bbb", {{{"tuned_ms", 1.0}}}); // a record that holds no times of one build
  const Result<BuildPairs> pairs = pairBuilds({round});
  ASSERT_TRUE(pairs) << pairs.status().toString();
  EXPECT_EQ(pairs->rows.size(), 1u);
  EXPECT_EQ(pairs->facts["unpaired"], 2);
}

TEST(BuildPairs, RecordsThatMustNotBeComparedAreNamed) {
  const auto fault = [](const std::vector<BuildRound> &rounds) {
    const Result<BuildPairs> pairs = pairBuilds(rounds);
    return pairs ? std::string("none") : pairs.status().toString();
  };
  BuildRound other = roundOf({prefill(8192, 2.0)}, {prefill(8192, 2.0)});
  other.fresh["prefill"] = record("ccc", {prefill(8192, 2.0)});
  EXPECT_NE(fault({roundOf({prefill(8192, 2.0)}, {prefill(8192, 2.0)}), other}).find("the new build's source = ccc"),
            std::string::npos);
  other.fresh["prefill"] = record("bbb", {prefill(8192, 2.0)}, "NVIDIA H100");
  EXPECT_NE(fault({other}).find("device = NVIDIA H100"), std::string::npos);
  EXPECT_NE(fault({}).find("rounds = 0"), std::string::npos);
  EXPECT_NE(fault({roundOf({prefill(8192, 2.0)}, {prefill(4096, 2.0)})}).find("must have a measurement"),
            std::string::npos);
}

TEST(BuildPairs, RoundsAreFoldersWithRecords) {
  Result<tools::ScratchFolder> folder = tools::ScratchFolder::make();
  ASSERT_TRUE(folder) << folder.status().toString();
  const std::filesystem::path root = folder->path();
  EXPECT_FALSE(readRounds(root.string())) << "there is no folder `new`";
  const auto write = [&](const std::string &place, const std::string &text) {
    const std::filesystem::path path = root / place;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  for (const char *side : {"old", "new"})
    for (const char *round : {"2", "10"})
      write(std::string(side) + "/" + round + "/prefill.json",
            record(side, {prefill(8192, std::string(round) == "2" ? 1.0 : 3.0)}).dump());
  Result<std::vector<BuildRound>> rounds = readRounds(root.string());
  ASSERT_TRUE(rounds) << rounds.status().toString();
  ASSERT_EQ(rounds->size(), 2u);
  EXPECT_EQ((*rounds)[1].fresh.at("prefill")["results"][0]["median_ms"], 3.0) << "10 comes after 2";

  write("new/2/decode.json", "{}");
  rounds = readRounds(root.string());
  ASSERT_FALSE(rounds);
  EXPECT_NE(rounds.status().toString().find("decode.json"), std::string::npos);
  write("new/2/decode.json", record("new", {}).dump());
  write("new/last/prefill.json", "{}");
  rounds = readRounds(root.string());
  ASSERT_FALSE(rounds);
  EXPECT_NE(rounds.status().toString().find("round = last"), std::string::npos);
  std::filesystem::remove_all(root / "new" / "last");
  std::filesystem::remove_all(root / "old" / "10");
  rounds = readRounds(root.string());
  ASSERT_FALSE(rounds);
  EXPECT_NE(rounds.status().toString().find("old/10"), std::string::npos) << "a round has records of both builds";
}

} // namespace
} // namespace nsa::bench
