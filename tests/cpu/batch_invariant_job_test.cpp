// Plans with batch_invariant on the command line: what is made for one size serves all sizes, and what it costs.
#include "tests/cpu/program_job.h"

namespace nsa::tools {
namespace {

class BatchInvariantJob : public ProgramJob {
protected:
  nlohmann::json explained(const std::string &sizes, const std::string &policy) {
    const std::string text =
        run("explain --op decode --config '" + config + "' " + sizes + " --cache " + database + " --device cpu --json",
            0, "NSA_CACHE_PACKS=none NSA_MISS=" + policy);
    const nlohmann::json report = nlohmann::json::parse(text, nullptr, false);
    EXPECT_TRUE(report.is_object()) << text;
    return report["kernels"];
  }

  const std::string heads = R"("query_heads": 4, "kv_heads": 2, "qk_dim": 16, "v_dim": 16, "batch_invariant": true)";
  const std::string config = R"({"dtype": "fp32", )" + heads + "}";
};

TEST_F(BatchInvariantJob, WhatIsTunedForOneSizeServesAllSizes) {
  const std::string workload = R"({"name": "one", "dtypes": ["fp32"], "heads": [{"name": "h", "config": {)" + heads +
                               R"(}}], "decode": {"lengths": [1024, 65536], "batch": [1, 64], "page_sizes": [0]}})";
  const nlohmann::json tuned =
      runJson("tune " + scratch.write("workload.json", workload) + " --device cpu --cache " + database);
  EXPECT_EQ(tuned["kernels"].size(), 10u) << tuned.dump(1);
  for (const nlohmann::json &kernel : tuned["kernels"]) {
    EXPECT_EQ(kernel["has_choices"], false) << kernel.dump(1);
    EXPECT_NE(kernel.value("problem", "").find(" batch_invariant=1"), std::string::npos) << kernel.dump(1);
  }
  const nlohmann::json small = explained("--seqlen-q 1 --seqlen-k 512", "fail"),
                       large = explained("--batch 512 --seqlen-q 300 --seqlen-k 100000", "fail");
  EXPECT_EQ(small, large);
  for (const nlohmann::json &kernel : small) {
    EXPECT_EQ(kernel["would"], "run what the database holds") << kernel.dump(1);
    if (kernel["part"] == "sel" || kernel["part"] == "cmp")
      EXPECT_EQ(kernel["splits"]["source"], "batch_invariant") << kernel.dump(1);
  }
  for (const nlohmann::json &kernel : explained("--seqlen-q 1 --seqlen-k 512", "background"))
    EXPECT_EQ(kernel["tunes_in_background"], false) << kernel.dump(1);
  // They are not measured, so a pack of measured kernels has them all the same.
  run("cache export " + scratch.file("k.nsapack") + " --tuned-only --cache " + database);
  EXPECT_EQ(runJson("cache list --cache " + scratch.file("k.nsapack"))["choices"].size(), 10u);
}

TEST_F(BatchInvariantJob, TheBenchPrintsTheCost) {
  const std::string bench = "bench decode --device cpu"
                            " --S_list 64 --samples 3 --warm-ups 1 --heads 2 --groups 1 --dk 16 --dv 16 --results ''";
  const nlohmann::json row = runJson(bench + " --batch-invariant")["results"][0];
  EXPECT_GT(row.value("us_invariant", 0.0), 0) << row.dump(1);
  EXPECT_NEAR(row.value("cost_invariant", 0.0), row.value("us_invariant", 0.0) / row.value("us_total", 1.0), 0.01);
  EXPECT_FALSE(runJson(bench)["results"][0].contains("us_invariant"));
  EXPECT_NE(run(bench + " --batch-invariant").find("invariant / step"), std::string::npos);
}

} // namespace
} // namespace nsa::tools
