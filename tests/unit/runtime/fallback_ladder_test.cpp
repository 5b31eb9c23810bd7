// The order of the fallback ladder on lists of choices, without a device: what may serve what, and which comes first.
#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/report/miss_report.h"
#include "runtime/include/nsa/nsa.h"

#include <gtest/gtest.h>

using namespace nsa;

namespace {

const std::string kFixed = "window dtype=bf16 group=4 qk_dim=64";
const std::string kH200 = "NVIDIA H200 sms=132", kH100 = "NVIDIA H100 sms=132";

std::string problem(int seqlenK, int batch = 1, const std::string &fixed = kFixed) {
  return fixed + " | batch=" + std::to_string(batch) + " seqlen_k=" + std::to_string(seqlenK) + " seqlen_q=16";
}

ChoiceSummary choice(const std::string &key, const std::string &device = kH200, bool tuned = true,
                     const std::string &target = "sm_90a", const std::string &name = "attention") {
  return {key, device, "content of " + key + " on " + device, tuned, target, name, "tile=16", 0};
}

LadderRequest request(int seqlenK = 1024, const std::string &device = kH200, const std::string &target = "sm_90a") {
  return {*ProblemKey::parse(problem(seqlenK)), device, target};
}

// "nearest 2048 NVIDIA H200", ...
std::vector<std::string> texts(const std::vector<Rung> &rungs) {
  std::vector<std::string> result;
  for (const Rung &rung : rungs) {
    const size_t at = rung.choice.problem.find("seqlen_k=") + 9;
    result.push_back(std::string(fallbackStepName(rung.step)) + " " +
                     rung.choice.problem.substr(at, rung.choice.problem.find(' ', at) - at) + " " + rung.choice.device);
  }
  return result;
}
using Texts = std::vector<std::string>;

TEST(FallbackLadder, StepsComeInTheirOrder) {
  const std::vector<ChoiceSummary> choices = {choice(problem(1024), "sm_80", false, "sm_80"),
                                              choice(problem(1024), kH100),
                                              choice(problem(4096)),
                                              choice(problem(1024)), // its own: no fallback
                                              choice(problem(1024), "sm_90a", false),
                                              choice(problem(1024), "NVIDIA GH", true, "sm_90")};
  EXPECT_EQ(texts(rankFallbacks(request(), choices)),
            (Texts{"nearest 4096 " + kH200, "model 1024 " + kH100, "model 1024 sm_90a", "architecture 1024 NVIDIA GH"}))
      << "code for sm_80 does not run on sm_90";
}

TEST(FallbackLadder, TheNearestComesFirstAndOfTwoTheLonger) {
  const std::vector<ChoiceSummary> choices = {choice(problem(256)), choice(problem(512)), choice(problem(2048)),
                                              choice(problem(16384)), choice(problem(1024, 8))};
  EXPECT_EQ(texts(rankFallbacks(request(), choices)),
            (Texts{"nearest 2048 " + kH200, "nearest 512 " + kH200, "nearest 256 " + kH200, "nearest 1024 " + kH200,
                   "nearest 16384 " + kH200}))
      << "distances 1, 1, 2, 3 (the batch) and 4";
  EXPECT_EQ(rankFallbacks(request(), choices).front().distance, 1);
  EXPECT_EQ(rankFallbacks(request(), choices).back().distance, 4);
}

TEST(FallbackLadder, WhatWasMeasuredComesFirstWhateverItsDistance) {
  EXPECT_EQ(texts(rankFallbacks(request(), {choice(problem(2048), kH200, false), choice(problem(65536))})),
            (Texts{"nearest 65536 " + kH200, "nearest 2048 " + kH200}));
  EXPECT_EQ(texts(rankFallbacks(request(), {choice(problem(1024), "sm_90a", false), choice(problem(2048), kH100)})),
            (Texts{"model 2048 " + kH100, "model 1024 sm_90a"}));
}

// As a lookup would: a measured one of a pack before the database's that was never measured.
TEST(FallbackLadder, OfSeveralLayersTheOneThatServesIsRanked) {
  auto inLayer = [](int layer, bool tuned, int length, const std::string &target = "sm_90a") {
    ChoiceSummary summary = choice(problem(length), kH200, tuned, target);
    summary.layer = layer;
    return summary;
  };
  const std::vector<Rung> rungs =
      rankFallbacks(request(), {inLayer(0, false, 2048, "sm_90"), inLayer(0, true, 65536), inLayer(1, true, 2048),
                                inLayer(1, true, 65536), inLayer(2, true, 2048), inLayer(2, false, 4096)});
  EXPECT_EQ(texts(rungs), (Texts{"nearest 2048 " + kH200, "nearest 65536 " + kH200, "nearest 4096 " + kH200}));
  EXPECT_EQ(rungs[0].choice.layer, 1);
  EXPECT_EQ(rungs[0].choice.target, "sm_90a") << "what it is checked against";
  EXPECT_EQ(rungs[1].choice.layer, 0);
}

TEST(FallbackLadder, OtherKernelsDoNotServe) {
  const std::vector<ChoiceSummary> choices = {
      choice(problem(2048, 1, "window dtype=bf16 group=8 qk_dim=64")), // compiled for something else
      choice(problem(2048, 1, "dense dtype=bf16 group=4 qk_dim=64")),
      choice(kFixed + " | batch=1 seqlen_k=2048"), // other buckets: of an older library
      choice(kFixed + " | batch=1 seqlen_k=many seqlen_q=16"),
      choice(kFixed),
      choice(problem(2048), kH200 + " templates=12"), // made from a folder of templates
      choice("")};
  EXPECT_TRUE(rankFallbacks(request(), choices).empty());
  EXPECT_EQ(rankFallbacks({*ProblemKey::parse(problem(1024)), kH200 + " templates=12", "sm_90a"}, choices).size(), 1u)
      << "its own folder's do";
}

TEST(FallbackLadder, ArchitecturesServeAsTheirCodeRuns) {
  const struct {
    const char *device, *code;
    bool runs;
  } rows[] = {{"sm_86", "sm_80", true},     {"sm_89", "sm_80", true},     {"sm_89", "sm_86", true},
              {"sm_86", "sm_89", false},    {"sm_80", "sm_86", false},    {"sm_90a", "sm_90", true},
              {"sm_90a", "sm_80", false},   {"sm_100a", "sm_90a", false}, {"sm_100a", "sm_100", true},
              {"sm_103", "sm_100a", false}, {"sm_103", "sm_100", true},   {"sm_120a", "sm_100", false},
              {"sm_121", "sm_120", true},   {"sm_121", "sm_120f", false}, {"sm_89", "sm_", false},
              {"sm_89", "cpu", false},      {"sm_89", "sm_8", false}};
  for (const auto &row : rows) {
    const std::vector<Rung> rungs =
        rankFallbacks(request(1024, "this one", row.device), {choice(problem(1024), "another", true, row.code)});
    ASSERT_EQ(rungs.size(), row.runs ? 1u : 0u) << row.code << " on " << row.device;
    if (row.runs)
      EXPECT_EQ(rungs[0].step, FallbackStep::kArchitecture) << row.code << " on " << row.device;
  }
  // What was compiled for the architecture without a device stands under its name, and every model of it takes it.
  const std::vector<Rung> compiled =
      rankFallbacks(request(1024, kH200, "sm_90a"), {choice(problem(1024), "sm_90a", false, "sm_90a")});
  ASSERT_EQ(compiled.size(), 1u);
  EXPECT_EQ(compiled[0].step, FallbackStep::kModel);
  // Of several the newest, even where an older one is nearer.
  const std::vector<Rung> rungs =
      rankFallbacks(request(1024, "L40", "sm_89"),
                    {choice(problem(1024), "A100", true, "sm_80"), choice(problem(4096), "A10", true, "sm_86")});
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(rungs[0].choice.device, "A10");
}

TEST(FallbackLadder, AProcessorTakesWhatItsFeaturesRun) {
  auto serves = [](const std::string &own, const std::string &other) {
    const std::vector<Rung> rungs =
        rankFallbacks(request(1024, own, "cpu"), {choice(problem(1024), other, true, "cpu")});
    return rungs.empty() ? "" : std::string(fallbackStepName(rungs[0].step));
  };
  EXPECT_EQ(serves("cpu x86-64-v4", "cpu x86-64-v3"), "architecture");
  EXPECT_EQ(serves("cpu x86-64-v3", "cpu x86-64-v4"), "") << "an illegal instruction";
  EXPECT_EQ(serves("cpu x86-64-v4", "cpu"), "") << "its features are not known";
  EXPECT_EQ(serves("cpu x86-64-v4", "cpu x86-64-v9"), "");
}

TEST(FallbackLadder, AForcedTemplateIsTheOnlyOne) {
  LadderRequest forced = request();
  forced.forcedTemplate = "row_attention";
  EXPECT_EQ(
      rankFallbacks(forced, {choice(problem(2048)), choice(problem(4096), kH200, true, "sm_90a", "row_attention")})
          .size(),
      1u);
}

// The order does not depend on that of the rows, and a row in two layers counts once.
TEST(FallbackLadder, TheOrderIsTotal) {
  std::vector<ChoiceSummary> choices = {choice(problem(512), kH100), choice(problem(512), "NVIDIA GH"),
                                        choice(problem(2048)), choice(problem(2048)), choice(problem(1024, 2))};
  const Texts once = texts(rankFallbacks(request(), choices));
  EXPECT_EQ(once.size(), 4u);
  std::reverse(choices.begin(), choices.end());
  EXPECT_EQ(texts(rankFallbacks(request(), choices)), once);
}

TEST(FallbackLadder, StepsAreReadAndWritten) {
  for (const char *text : {"all", "exact", "nearest", "nearest,model", "compiled,cpu"}) {
    Result<FallbackSteps> steps = FallbackSteps::parse("fallbacks", text);
    ASSERT_TRUE(steps.isOk()) << steps.status().toString();
    EXPECT_EQ(steps->toString(), text);
    EXPECT_TRUE(steps->allows(FallbackStep::kExact));
  }
  EXPECT_FALSE(FallbackSteps::parse("fallbacks", "exact")->allows(FallbackStep::kNearest));
  EXPECT_TRUE(FallbackSteps::parse("fallbacks", "model,nearest")->allows(FallbackStep::kNearest));
  EXPECT_EQ(FallbackSteps::parse("fallbacks", "nearest,model,architecture,compiled,cpu")->toString(), "all");
  for (const char *text : {"", "some", "nearest,", "nearest, model", "ALL", "all,model"}) {
    Result<FallbackSteps> steps = FallbackSteps::parse("NSA_FALLBACKS", text);
    ASSERT_FALSE(steps.isOk()) << text;
    EXPECT_EQ(steps.status().error().field, "NSA_FALLBACKS");
    EXPECT_NE(steps.status().error().rule.find("nearest"), std::string::npos);
  }
}

TEST(FallbackLadder, TheNearestIsNamedByHowItDiffers) {
  const std::vector<ChoiceSummary> choices = {choice(problem(1024, 1, "window dtype=fp32 group=8 qk_dim=64")),
                                              choice(problem(65536, 1, "window dtype=fp32 group=4 qk_dim=64"), kH100),
                                              choice(problem(1024, 1, "dense dtype=bf16 group=4 qk_dim=64"))};
  const ChoiceSummary *nearest = findNearest(request(), choices);
  ASSERT_EQ(nearest, &choices[1]) << "one difference in what is compiled in, the other has two";
  EXPECT_EQ(differenceText(request(), *nearest),
            "dtype=fp32 instead of bf16, seqlen_k=65536 instead of 1024, on '" + kH100 + "'");
  EXPECT_EQ(findNearest(request(), {choices[2]}), nullptr);
  EXPECT_EQ(differenceText(request(), choice(problem(1024))), "");
}

TEST(MissReport, TheCommandFitsItsField) {
  Spec spec;
  spec.op = Operator::kDecode;
  spec.layout = Layout::kPacked;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = 192;
  spec.vDim = 128;
  spec.window = 1024;
  spec.pageSize = 256;
  spec.gate = Gate::kSigmoid;
  const Maxima maxima{64, 64, 1, 65536};
  const std::string hint = tuneHint({planTuning(spec, maxima), "cuda:0", "/home/u/.cache/nsa/kernels.db"});
  EXPECT_EQ(hint, "nsa tune --op decode --config '{\"dtype\":\"bf16\",\"query_heads\":64,\"kv_heads\":4,"
                  "\"qk_dim\":192,\"v_dim\":128,\"layout\":\"packed\",\"window\":1024,\"gate\":\"sigmoid\","
                  "\"page_size\":256}' --batch 64 --seqlen-q 1 --seqlen-k 65536 --device cuda:0 --cache "
                  "/home/u/.cache/nsa/kernels.db");

  // Everything that a spec can say, with large numbers and a long path.
  spec.scale = 0.08838835f;
  spec.cmpKind = CmpKind::kMlp;
  spec.mlpHidden = 1024;
  spec.mlpActivation = Activation::kGelu;
  spec.cmpBlock = 64;
  spec.cmpStride = 32;
  spec.selBlock = 128;
  spec.selCount = 32;
  spec.initBlocks = spec.localBlocks = 12;
  spec.gatePerGroup = true;
  spec.branches = kBranchCmp | kBranchSel;
  const Maxima large{1 << 20, 1 << 21, 1 << 20, 1 << 22};
  const std::string path = "/" + std::string(255, 'x') + "/kernels.db";
  const std::string longest =
      tuneHint({planTuning(spec, large), "cuda:0", path, "", "/templates", "x86-64-v3", 16, true});
  EXPECT_TRUE(longest.starts_with("NSA_TEMPLATE_DIR=/templates NSA_CPU_FEATURES=x86-64-v3 NSA_DECODE_SPLITS=16 "
                                  "NSA_IGNORE_THRESHOLDS=1 nsa tune --op decode --config '{"))
      << longest;
  EXPECT_NE(longest.find(" --seqlen-k 4194304 --tokens-q 2097152 --device cuda:0 --cache " + path), std::string::npos)
      << longest;
}

// Followed to the letter it must fill the gap, wherever the engine looks.
TEST(MissReport, TheCommandFitsTheEngine) {
  Spec spec;
  spec.op = Operator::kWindow;
  spec.queryHeads = spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 64;
  auto hint = [&](const std::string &cache, const std::string &pin = "", const std::string &templates = "") {
    const std::string text = tuneHint({planTuning(spec, {1, 64, 64, 64}), "cpu", cache, pin, templates});
    EXPECT_NE(text.find("nsa tune --op window --config '{"), std::string::npos) << text;
    return text;
  };
  auto expectEnd = [](const std::string &text, const std::string &end) { EXPECT_TRUE(text.ends_with(end)) << text; };
  expectEnd(hint("/kernels.db"), " --device cpu --cache /kernels.db");
  expectEnd(hint("/home/u/My Cache/it's.db"), " --cache '/home/u/My Cache/it'\\''s.db'");
  expectEnd(hint(":memory:"), " --cache kernels.db && nsa cache export kernels.nsapack --force --cache kernels.db "
                              "# a pack for NSA_CACHE_PACKS");
  expectEnd(hint("/kernels.db", "/pin.nsapack"),
            " --cache kernels.db # then make the pinned table anew from its choices and kernels.db");
  EXPECT_TRUE(hint("/kernels.db", "", "/my templates").starts_with("NSA_TEMPLATE_DIR='/my templates' nsa tune"));
}

TEST(MissReport, TheCommandOfAProgram) {
  const std::map<std::string, std::string> values = {{"columns", "1000"}, {"dtype", "bf16"}};
  const std::string save = " # first save the text of the program as softmax.tile";
  const auto hint = [&](const std::string &cache, const std::string &pin = "", const std::string &path = "") {
    return tuneHint({programTuning("softmax", path, values), "cpu", cache, pin});
  };
  const std::string begin = "nsa tune --program softmax.tile --set columns=1000 --set dtype=bf16 --device cpu --cache ";
  EXPECT_EQ(hint("/kernels.db"), begin + "/kernels.db" + save);
  EXPECT_EQ(hint("/kernels.db", "/pin.nsapack"),
            begin + "kernels.db" + save + "; then make the pinned table anew from its choices and kernels.db");
  EXPECT_EQ(hint(":memory:"), begin + "kernels.db && nsa cache export kernels.nsapack --force --cache kernels.db" +
                                  save + "; a pack for NSA_CACHE_PACKS");
  EXPECT_EQ(hint("/kernels.db", "", "my programs/it.tile"),
            "nsa tune --program 'my programs/it.tile' --set columns=1000 --set dtype=bf16 "
            "--device cpu --cache /kernels.db");
}

} // namespace
