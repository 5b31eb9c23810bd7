// Single plans of a workload and of a program's record: what the library writes is read as the same, equal ones are
// merged, lines that were cut off are named, and every other fault is an error with file, line and field.
#include "autotune/workload/tune_jobs.h"
#include "runtime/base/config_text.h"
#include "runtime/engine/graph/pipeline.h"
#include "runtime/engine/graph/routing.h"
#include "tests/harness/scratch.h"
#include "tests/harness/seed.h"
#include "tools/nsa/files/find_workload.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

namespace nsa::tools {
namespace {

using test::Scratch;

constexpr std::string_view kWindow =
    R"({"op":"window","batch":2,"seqlen_q":40,"seqlen_k":300,"config":{"dtype":"fp16","query_heads":8,"kv_heads":2,"qk_dim":64,"v_dim":32,"window":100}})";
constexpr std::string_view kDecode =
    R"({"op":"decode","batch":5,"seqlen_q":1,"seqlen_k":5000,"config":{"dtype":"bf16","query_heads":8,"kv_heads":2,"qk_dim":64,"v_dim":64,"layout":"packed","gate":"sigmoid","page_size":128}})";

Result<Workload> readPlansText(std::string_view text, const std::string &name = "plans.jsonl") {
  const Scratch scratch;
  return readWorkload(scratch.write(name, text));
}
std::string planError(std::string_view text) {
  const Result<Workload> workload = readPlansText(text);
  EXPECT_FALSE(workload) << text;
  return workload.status().toString();
}
void expectPlanError(std::string_view text, const std::string &part) {
  const std::string error = planError(text);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}
// The line with one value replaced or, by null, taken out.
std::string changedLine(std::string_view line, const char *pointer, const nlohmann::json &value) {
  nlohmann::json json = nlohmann::json::parse(line);
  json[nlohmann::json::json_pointer(pointer)] = value;
  if (value.is_null())
    json.erase(std::string(pointer + 1));
  return "{\"op\":" + json["op"].dump() + "," + (json.erase("op"), json.dump().substr(1));
}
std::string listOf(std::string_view plans, const std::string &more = "") {
  return R"({"name": "w", "plans": [)" + std::string(plans) + "]" + more + "}";
}

TEST(WorkloadPlans, ARecordIsAWorkload) {
  const std::string lines = std::string(kWindow) + "\n\n" + std::string(kDecode) + "\n" + std::string(kWindow) + "\n";
  const Result<Workload> workload = readPlansText(lines, "My Plans.jsonl");
  ASSERT_TRUE(workload) << workload.status().toString();
  EXPECT_EQ(workload->name, "my-plans");
  EXPECT_TRUE(workload->heads.empty());
  EXPECT_TRUE(workload->warnings.empty());
  ASSERT_EQ(workload->plans.size(), 2u) << "equal ones are merged";
  const PlannedCall &window = workload->plans[0], &decode = workload->plans[1];
  EXPECT_EQ(planText(window.spec, window.maxima), kWindow);
  EXPECT_EQ(planText(decode.spec, decode.maxima), kDecode);
  EXPECT_EQ(window.spec.op, Operator::kWindow);
  EXPECT_EQ(window.spec.dtype, DType::kF16);
  EXPECT_EQ(window.spec.window, 100);
  EXPECT_EQ(window.maxima.tokensQ, 80);
  EXPECT_EQ(window.headsText(), "8/2x64/32");
  EXPECT_EQ(decode.spec.pageSize, 128);
  EXPECT_EQ(decode.spec.gate, Gate::kSigmoid);
  EXPECT_EQ(decode.maxima.seqlenK, 5000);

  // The same plans as a list of a workload, beside heads or alone.
  for (const std::string more :
       {"", R"(, "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}}],
              "prefill": {"lengths": [64]})"}) {
    const Result<Workload> list = readPlansText(listOf(std::string(kWindow) + "," + std::string(kDecode), more));
    ASSERT_TRUE(list) << list.status().toString();
    EXPECT_EQ(list->name, "w");
    ASSERT_EQ(list->plans.size(), 2u);
    EXPECT_EQ(planText(list->plans[1].spec, list->plans[1].maxima), kDecode);
    EXPECT_EQ(list->heads.size(), more.empty() ? 0u : 1u);
  }
}

// Whatever an engine plans, its line is read as the same, and asks for the same kernels.
TEST(WorkloadPlans, WhatTheLibraryWritesIsReadAsTheSame) {
  std::mt19937_64 random(test::freshSeed());
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const auto number = [&](int64_t least, int64_t most) { return static_cast<int32_t>(draw(least, most)); };
  for (int i = 0; i < test::drawnCases(500); ++i) {
    Spec spec;
    spec.op = publicOperators()[static_cast<size_t>(draw(0, static_cast<int64_t>(publicOperators().size()) - 1))].op;
    spec.dtype = static_cast<DType>(draw(0, 2));
    spec.layout = static_cast<Layout>(draw(0, 1));
    spec.kvHeads = number(1, 8);
    spec.queryHeads = spec.kvHeads * number(1, 16);
    spec.qkDim = number(1, 32) * 8;
    spec.vDim = number(1, 32) * 8;
    spec.window = number(1, 5000);
    spec.scale = draw(0, 1) ? 0 : std::uniform_real_distribution<float>(0, 100)(random);
    spec.cmpStride = 1 << draw(0, 5);
    spec.cmpBlock = spec.cmpStride * number(1, 4);
    spec.selBlock = spec.cmpStride * number(1, 4);
    spec.selCount = number(6, 128);
    spec.initBlocks = number(0, 3);
    spec.localBlocks = number(1, 3);
    spec.cmpKind = static_cast<CmpKind>(draw(0, 2));
    spec.mlpHidden = number(1, 100);
    spec.mlpActivation = static_cast<Activation>(draw(0, 2));
    spec.gate = static_cast<Gate>(draw(0, 2));
    spec.gatePerGroup = draw(0, 1) != 0;
    spec.branches = number(1, 7);
    spec.pageSize = spec.op == Operator::kDecode ? spec.selBlock * number(0, 4) : 0;
    Maxima maxima{.batch = draw(1, 9), .tokensQ = 0, .seqlenQ = draw(0, 100), .seqlenK = draw(100, 100000)};
    maxima.tokensQ = draw(0, 1) ? maxima.batch * maxima.seqlenQ : draw(0, maxima.batch * maxima.seqlenQ);
    if (!spec.validate().isOk() || !maxima.validate(spec).isOk())
      continue;
    const std::string line = planText(spec, maxima);
    const Result<Workload> workload = readPlansText(line + "\n");
    ASSERT_TRUE(workload) << line << "\n" << workload.status().toString();
    ASSERT_EQ(workload->plans.size(), 1u);
    const PlannedCall &plan = workload->plans[0];
    EXPECT_EQ(planText(plan.spec, plan.maxima), line);
    if (fieldsOf(spec.op) & kQk)
      EXPECT_EQ(plan.spec.scale, spec.scale) << line;
    std::set<std::string> wanted, problems;
    for (const Step &step : routingOf(spec, maxima, {}).steps())
      wanted.insert(Problem::make(step.spec, step.maxima).key());
    const Result<std::vector<TuneJob>> jobs = expand({*workload});
    ASSERT_TRUE(jobs) << jobs.status().toString();
    for (const TuneJob &job : *jobs)
      problems.insert(job.problem);
    EXPECT_EQ(problems, wanted) << line;
  }
}

// A plan may say fields that its operator does not read: they choose no other kernels.
TEST(WorkloadPlans, PagesOfAnOperatorWithoutACacheAreIgnored) {
  for (const OperatorDef &def : publicOperators()) {
    SCOPED_TRACE(def.name);
    const auto lineWith = [&](const std::string &pages) {
      return R"({"op": ")" + std::string(def.name) +
             R"(", "batch": 1, "seqlen_q": 128, "seqlen_k": 256, "config": {"query_heads": 4, "kv_heads": 2, )" +
             R"("qk_dim": 64)" + pages + "}}\n";
    };
    std::vector<std::string> problems[2];
    for (const bool paged : {false, true}) {
      const Result<Workload> workload = readPlansText(lineWith(paged ? R"(, "page_size": 64)" : ""));
      ASSERT_TRUE(workload) << workload.status().toString();
      const Result<std::vector<TuneJob>> jobs = expand({*workload});
      ASSERT_TRUE(jobs) << jobs.status().toString();
      for (const TuneJob &job : *jobs)
        problems[paged].push_back(job.problem);
    }
    EXPECT_EQ(problems[0] != problems[1], (def.fields & kPages) != 0);
  }
}

TEST(WorkloadPlans, JobsSayWhatWasPlanned) {
  const Result<Workload> workload = readPlansText(std::string(kWindow) + "\n" + std::string(kDecode) + "\n");
  ASSERT_TRUE(workload) << workload.status().toString();
  const Result<std::vector<TuneJob>> jobs = expand({*workload});
  ASSERT_TRUE(jobs) << jobs.status().toString();
  EXPECT_EQ(jobs->front().text(), "8/2x64/32 window fp16 dense 2x300 queries=40 window");
  EXPECT_EQ(jobs->front().maxima.seqlenQ, 40);
  EXPECT_EQ(jobs->back().text(), "8/2x64/64 decode bf16 pages of 128 5x5000 combine");
  EXPECT_EQ(jobs->back().spec.gate, Gate::kSigmoid);
}

TEST(WorkloadPlans, LinesThatWereCutAreNamedAndPassedOver) {
  const std::string line(kWindow);
  for (size_t bytes = 6; bytes < line.size(); ++bytes) {
    const Result<Workload> last = readPlansText(std::string(kDecode) + "\n" + line.substr(0, bytes));
    ASSERT_TRUE(last) << line.substr(0, bytes) << ": " << last.status().toString();
    EXPECT_EQ(last->plans.size(), 1u) << bytes;
    ASSERT_EQ(last->warnings.size(), 1u) << bytes;
    EXPECT_NE(last->warnings[0].find("plans.jsonl:2 was cut off and is passed over: {\"op\""), std::string::npos)
        << last->warnings[0];
  }
  // Also the first one, and one that another writer went on behind.
  const Result<Workload> amid = readPlansText(line.substr(0, 90) + "\n" + std::string(kDecode) + "\n");
  ASSERT_TRUE(amid) << amid.status().toString();
  EXPECT_EQ(amid->plans.size(), 1u);
  EXPECT_NE(amid->warnings[0].find(":1 was cut off and is passed over: " + line.substr(0, 40) + "..."),
            std::string::npos)
      << amid->warnings[0];
  for (size_t bytes = 1; bytes < 20; ++bytes) {
    const Result<Workload> first =
        readPlansText(line.substr(0, bytes) + "\n\n" + line.substr(0, 1) + "\n" + std::string(kDecode) + "\n");
    ASSERT_TRUE(first) << bytes << ": " << first.status().toString();
    EXPECT_EQ(first->plans.size(), 1u) << bytes;
    ASSERT_EQ(first->warnings.size(), 2u) << bytes;
    EXPECT_NE(first->warnings[0].find("plans.jsonl:1 was cut off"), std::string::npos) << first->warnings[0];
    EXPECT_NE(first->warnings[1].find("plans.jsonl:3 was cut off"), std::string::npos) << first->warnings[1];
  }
  // A workload's first line may look like a line that was cut off.
  expectPlanError("{\n  \"name\": \"w\",\n  \"plans\": [\n" + std::string(kDecode) + "\n", "is not valid JSON");
  expectPlanError(line.substr(0, 20), "plans.jsonl holds no plan: ");
  expectPlanError(line.substr(0, 20), "plans.jsonl:1 was cut off");
}

TEST(WorkloadPlans, ARecordOfNothingIsAnError) {
  for (const char *text : {"", "\n", " \n\n"})
    expectPlanError(text, "plans.jsonl holds no plan: it is empty (hint: run the program with NSA_RECORD=");
}

TEST(WorkloadPlans, WhatIsWrongInALineIsNamedWithIt) {
  const auto expectSecond = [](const std::string &line, const std::string &part) {
    expectPlanError(std::string(kWindow) + "\n" + line + "\n", "plans.jsonl:2" + part);
  };
  expectSecond("window: 3", " is not valid JSON");
  expectSecond("[1]", " must be a JSON object");
  expectSecond(std::string(kDecode) + "}", " is not valid JSON");
  expectSecond(R"({"op":"window","op":"window"})", " is not valid JSON: the key \"op\" stands there twice");
  expectSecond(changedLine(kDecode, "/op", "decoed"),
               ": op = \"decoed\": must be one of dense, window, compress, cmp, "
               "select, sel, combine, nsa, decode, rotate, rotate_bwd, combine_bwd, "
               "dense_bwd, window_bwd, cmp_bwd, invert, compress_bwd, sel_bwd, nsa_bwd");
  expectSecond(changedLine(kDecode, "/op", "append"), ": op = \"append\": must be one of dense");
  expectSecond(changedLine(kDecode, "/op", 3), ": op = 3: must be a text");
  expectSecond(changedLine(kDecode, "/batch", nullptr), ": batch = (absent): must be a whole number from 1");
  expectSecond(changedLine(kDecode, "/batch", 0), ": batch = 0: must be a whole number from 1 to 2147483647");
  expectSecond(changedLine(kDecode, "/seqlen_q", -1), ": seqlen_q = -1: must be a whole number from 0");
  expectSecond(changedLine(kDecode, "/seqlen_k", "many"), ": seqlen_k = \"many\": must be a whole number");
  expectSecond(changedLine(kDecode, "/seqlen_k", 1e30), ": seqlen_k = 1e+30: must be a whole number");
  expectSecond(changedLine(kDecode, "/tokens_q", 1.5), ": tokens_q = 1.5: must be a whole number");
  expectSecond(changedLine(kDecode, "/seqlen_k", 1 << 23), ": max_seqlen_k = 8388608: must be at most 4194304");
  expectSecond(changedLine(kDecode, "/config", nullptr),
               ": config = (absent): must be an object with the keys of --config");
  expectSecond(changedLine(kDecode, "/config", 1), ": config = 1: must be an object");
  expectSecond(changedLine(kDecode, "/config/window", 0), ": config.window = 0: must be an integer from 1");
  expectSecond(changedLine(kDecode, "/config/query_heads", 7),
               ": config.query_heads = 7: must be a multiple of kv_heads");
  expectSecond(changedLine(kDecode, "/config/wings", 2), ": config: ");
  expectSecond(changedLine(kDecode, "/lengths", 2), ": lengths = 2: is no field there; the fields are op, batch");
}

TEST(WorkloadPlans, WhatIsWrongInAListIsNamedWithItsPlace) {
  const std::string bad = changedLine(kDecode, "/batch", 0);
  expectPlanError(listOf(std::string(kWindow) + "," + bad), ": plans[1].batch = 0: must be a whole number from 1");
  expectPlanError(listOf(changedLine(kDecode, "/seqlen_k", 1 << 23)), ": plans[0]: max_seqlen_k = 8388608: must be");
  expectPlanError(listOf("3"), ": plans[0] = 3: must be an object");
  expectPlanError(listOf(""), ": plans = []: must be a list of {\"op\": ...");
  expectPlanError(R"({"name": "w", "plans": {}})", ": plans = {}: must be a list");
  expectPlanError(listOf(kWindow, R"(, "plan": 1)"), "did you mean plans?");
  // What belongs to heads asks for them.
  expectPlanError(listOf(kWindow, R"(, "dtypes": ["bf16"])"), ": heads = (absent): must be a list of {\"name\"");
  expectPlanError(
      listOf(kWindow, R"(, "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}}])"),
      ": prefill = (absent): must be there, or decode must");
}

TEST(WorkloadPlans, AFileNeedsNoEnding) {
  const Scratch scratch;
  const std::filesystem::path before = std::filesystem::current_path();
  scratch.write("plans", std::string(kWindow) + "\n");
  scratch.write("ready/plans.json", R"({"name": "plans", "heads": [{"name": "a", "config": {"query_heads": 8,
                                    "kv_heads": 2, "qk_dim": 64}}], "prefill": {"lengths": [64]}})");
  std::filesystem::current_path(scratch.path());
  const Result<Workload> file = findWorkload("plans", "/nowhere");
  const Result<Workload> ready = findWorkload("plans", scratch.file("ready"));
  const Result<Workload> named = findWorkload("./plans", scratch.file("ready"));
  std::filesystem::current_path(before);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->plans.size(), 1u);
  ASSERT_TRUE(ready) << ready.status().toString();
  EXPECT_EQ(ready->heads.size(), 1u) << "a ready-made one of that name comes first";
  ASSERT_TRUE(named) << named.status().toString();
  EXPECT_EQ(named->plans.size(), 1u);
}

} // namespace
} // namespace nsa::tools
