// What a workload becomes: each problem once, in an order that stays, and the work that a kernel's time is set against.
#include "tests/harness/scratch.h"
#include "tools/nsa/files/find_workload.h"
#include "tools/nsa/tune/tune_devices.h"

#include "autotune/workload/stored_choices.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>
#include <set>
#include <span>

namespace nsa::tools {
namespace {

using test::Scratch;

std::vector<TuneJob> expandText(const std::string &text) {
  const Scratch scratch;
  const Result<Workload> workload = readWorkload(scratch.write("w.json", text));
  EXPECT_TRUE(workload) << workload.status().toString();
  Result<std::vector<TuneJob>> jobs = expand({*workload});
  EXPECT_TRUE(jobs) << jobs.status().toString();
  return std::move(*jobs);
}

std::string with(const std::string &rest, const std::string &config = "") {
  return R"({"name": "w", "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64)" + config +
         "}}], " + rest + "}";
}

std::vector<std::string> textsOf(const std::vector<TuneJob> &jobs) {
  std::vector<std::string> texts;
  for (const TuneJob &job : jobs)
    texts.push_back(job.text());
  return texts;
}

TEST(TuneJobs, TheTinyWorkloadIsTheseTwelve) {
  const Result<Workload> workload = readWorkload(NSA_TEST_DATA "/tune_tiny.json");
  ASSERT_TRUE(workload) << workload.status().toString();
  const Result<std::vector<TuneJob>> jobs = expand({*workload});
  ASSERT_TRUE(jobs) << jobs.status().toString();
  EXPECT_EQ(textsOf(*jobs),
            (std::vector<std::string>{
                "two nsa fp32 dense 1x64 compress", "two nsa fp32 dense 1x64 cmp", "two nsa fp32 dense 1x64 select",
                "two nsa fp32 dense 1x64 sel", "two nsa fp32 dense 1x64 win", "two nsa fp32 dense 1x64 combine",
                "two nsa fp32 dense 1x128 compress", "two nsa fp32 dense 1x128 cmp", "two nsa fp32 dense 1x128 select",
                "two nsa fp32 dense 1x128 sel", "two nsa fp32 dense 1x128 win", "two nsa fp32 dense 1x128 combine"}));
  EXPECT_EQ((*jobs)[3].problem, "dense dtype=fp32 group=2 many_queries=0 packed=0 page_size=0 qk_dim=16 v_dim=16 | "
                                "batch=1 kv_heads=1 seqlen_k=64 seqlen_q=64")
      << "every block is selected up to sel_count * sel_block";
  EXPECT_EQ((*jobs)[9].kernel.op, Operator::kSel);
  for (const TuneJob &job : *jobs) {
    EXPECT_TRUE(job.isTuned) << job.problem;
    EXPECT_TRUE(job.problem.starts_with(job.family + " | ")) << job.family;
  }
}

// A threshold keeps a device from the dense shortcut: both ways are tuned, as it may be measured anew.
TEST(TuneJobs, WhatAThresholdTakesTheShortcutFromIsTunedToo) {
  const Result<Workload> workload = readWorkload(NSA_TEST_DATA "/tune_tiny.json");
  ASSERT_TRUE(workload) << workload.status().toString();
  const Result<std::vector<TuneJob>> jobs = expand({*workload}, {}, [&](const Spec &spec, const Maxima &maxima) {
    EXPECT_EQ(spec.op, Operator::kNsa);
    return stepsOf(spec, maxima, static_cast<uint8_t>(routesOf(spec, maxima) & ~kSelIsDense));
  });
  ASSERT_TRUE(jobs) << jobs.status().toString();
  EXPECT_EQ(jobs->size(), 13u) << "at 128 there is no shortcut";
  EXPECT_EQ(std::ranges::count_if(*jobs, [](const TuneJob &job) { return job.kernel.op == Operator::kSel; }), 2);
}

// An engine of these rules launches no kernel of other splits, so there is none to make.
TEST(TuneJobs, AreOfTheSplitsThatTheRulesSet) {
  const Scratch scratch;
  const Result<Workload> workload =
      readWorkload(scratch.write("w.json", with(R"("decode": {"batch": [1], "lengths": [4096], "page_sizes": [0]})")));
  ASSERT_TRUE(workload) << workload.status().toString();
  const auto slotsOf = [&](const RouteRules &rules) {
    std::vector<std::string> slots;
    for (const TuneJob &job : *expand({*workload}, rules))
      if (const size_t at = job.problem.find(" slots="); at != std::string::npos)
        slots.push_back(job.problem.substr(at + 1, job.problem.find(' ', at + 1) - at - 1));
    return slots;
  };
  EXPECT_EQ(slotsOf({}), std::vector<std::string>{"slots=32"});
  EXPECT_EQ(slotsOf({.decodeSplits = 4}), std::vector<std::string>{"slots=16"});
}

// A plan on a device with this threshold takes one kernel, and the others where it cannot be had.
TEST(TuneJobs, AreOfTheOneLaunchWhereADeviceTakesIt) {
  const Scratch scratch;
  const Result<Workload> workload =
      readWorkload(scratch.write("w.json", with(R"("decode": {"batch": [1], "lengths": [4096], "page_sizes": [0]})")));
  ASSERT_TRUE(workload) << workload.status().toString();
  KernelCache cache({.path = scratch.file("kernels.db")}, Logger({}, LogLevel::kWarning));
  const std::string family = splitsFamily(expand({*workload})->front().spec);
  const Status stored =
      cache.putRoute({family, "measured", "decode.splits batch=1 seqlen_k=4096 seqlen_q=1", kTakesStep, "test", {}});
  ASSERT_TRUE(stored.isOk()) << stored.toString();
  const Status slower = cache.putRoute({family,
                                        "slower",
                                        "decode.splits batch=1 seqlen_k=4096 seqlen_q=1",
                                        StoredRoute::kNever,
                                        "test",
                                        {{kTakesStep, "decode_step", 1.2, 1.2, ""}}});
  ASSERT_TRUE(slower.isOk()) << slower.toString();
  const auto rolesOf = [&](const RoutedDevice &device, const RouteRules &rules) {
    std::multiset<std::string> roles;
    for (const TuneJob &job : *expandRouted({*workload}, rules, cache, {device}))
      roles.insert(job.role);
    return roles;
  };
  const std::multiset<std::string> usual = rolesOf({"another"}, {});
  EXPECT_EQ(usual.count("step"), 0u);
  EXPECT_EQ(rolesOf({"measured"}, {}), usual) << "the device does not run the kernel";
  std::multiset<std::string> both = usual;
  both.insert("step");
  EXPECT_EQ(rolesOf({"measured", true}, {}), both);
  EXPECT_EQ(rolesOf({"another", true}, {}), both) << "the rule takes it";
  EXPECT_EQ(rolesOf({"slower", true}, {}), usual);
}

// Exactly what a plan of each call will look for.
TEST(TuneJobs, AreTheProblemsOfThePlans) {
  const std::vector<TuneJob> jobs = expandText(with(
      R"("dtypes": ["bf16", "fp32"], "prefill": {"batch": [1, 3], "lengths": [100, 5000], "layouts": ["dense", "packed"]},
              "decode": {"batch": [1, 5], "lengths": [300, 70000], "page_sizes": [0, 64]})"));
  std::set<std::string> problems, wanted;
  for (const TuneJob &job : jobs)
    EXPECT_TRUE(problems.insert(job.problem).second) << "twice: " << job.problem;
  Spec spec;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 64;
  const auto want = [&](const Maxima &maxima) {
    for (const Step &step : stepsOf(spec, maxima))
      wanted.insert(Problem::make(step.spec, step.maxima).key());
  };
  for (DType dtype : {DType::kBf16, DType::kF32}) {
    spec.dtype = dtype;
    for (int64_t batch : {1, 3})
      for (int64_t length : {100, 5000})
        for (Layout layout : {Layout::kDense, Layout::kPacked}) {
          spec.op = Operator::kNsa;
          spec.layout = layout;
          spec.pageSize = 0;
          want({.batch = batch, .tokensQ = batch * length, .seqlenQ = length, .seqlenK = length});
        }
    for (int64_t batch : {1, 5})
      for (int64_t length : {300, 70000})
        for (int32_t page : {0, 64}) {
          spec.op = Operator::kDecode;
          spec.layout = Layout::kDense;
          spec.pageSize = page;
          want({.batch = batch, .tokensQ = batch, .seqlenQ = 1, .seqlenK = length});
        }
  }
  EXPECT_EQ(problems, wanted);
}

TEST(TuneJobs, NothingIsMeasuredTwice) {
  const size_t once = expandText(with(R"("prefill": {"lengths": [2048]})")).size();
  // Lengths of one bucket, and heads that ask the same.
  EXPECT_EQ(expandText(with(R"("prefill": {"lengths": [1800, 2048]})")).size(), once);
  const std::string twins = R"({"name": "w", "heads": [
      {"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}},
      {"name": "b", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}}], "prefill": {"lengths": [2048]}})";
  const std::vector<TuneJob> jobs = expandText(twins);
  EXPECT_EQ(jobs.size(), once);
  for (const TuneJob &job : jobs)
    EXPECT_EQ(job.head, "a") << "the first that needs it";
}

TEST(TuneJobs, WorkloadsShareTheirKernels) {
  const Scratch scratch;
  const auto read = [&](const std::string &name, const std::string &lengths) {
    const Result<Workload> workload =
        readWorkload(scratch.write(name + ".json", R"({"name": ")" + name +
                                                       R"(", "heads": [{"name": "a", "config": {"query_heads": 8,
        "kv_heads": 2, "qk_dim": 64}}], "prefill": {"lengths": [)" +
                                                       lengths + "]}}"));
    EXPECT_TRUE(workload) << workload.status().toString();
    return *workload;
  };
  const Workload one = read("one", "2048, 4096"), two = read("two", "4096, 8192");
  const Result<std::vector<TuneJob>> jobs = expand({one, two});
  ASSERT_TRUE(jobs) << jobs.status().toString();
  const size_t alone = expand({one})->size();
  size_t shared = 0;
  for (const TuneJob &job : *jobs) {
    const bool both = job.maxima.seqlenK == 4096;
    shared += both;
    EXPECT_EQ(job.workloads, (both ? std::vector<std::string>{"one", "two"}
                                   : std::vector<std::string>{job.maxima.seqlenK == 2048 ? "one" : "two"}))
        << job.text();
  }
  EXPECT_GT(shared, 0u);
  EXPECT_EQ(jobs->size(), 2 * alone - shared);
}

TEST(TuneJobs, MayBeThoseOfSomeOperatorsAlone) {
  std::vector<Workload> tiny = {*readWorkload(NSA_TEST_DATA "/tune_tiny.json")};
  const auto limited = [&](const std::vector<std::string> &operators) {
    EXPECT_TRUE(limitTo(operators, tiny).isOk());
    return expand(tiny);
  };
  const Result<std::vector<TuneJob>> jobs = limited({"dense", "window", "cmp"});
  ASSERT_TRUE(jobs) << jobs.status().toString();
  EXPECT_EQ(textsOf(*jobs), (std::vector<std::string>{"two nsa fp32 dense 1x64 cmp", "two nsa fp32 dense 1x64 sel",
                                                      "two nsa fp32 dense 1x64 win", "two nsa fp32 dense 1x128 cmp",
                                                      "two nsa fp32 dense 1x128 win"}))
      << "the selected branch of 64 tokens is dense attention";
  const std::string absent = limited({"cmp", "append"}).status().toString();
  EXPECT_NE(absent.find("operators = append: must be of kernels that the workloads have: dense, window, compress, "
                        "cmp, select, sel, combine"),
            std::string::npos)
      << absent;
  tiny[0].prefill->lengths = {64};
  EXPECT_TRUE(limited({"sel"})) << "a threshold may take it from the shortcut";
}

TEST(TuneJobs, OfADirectionAreThoseOfItsPasses) {
  std::vector<Workload> tiny = {*readWorkload(NSA_TEST_DATA "/tune_tiny.json")};
  tiny[0].prefill->lengths = {128};
  const auto problems = [&](TuneDirection direction) {
    tiny[0].direction = direction;
    const Result<std::vector<TuneJob>> jobs = expand(tiny);
    EXPECT_TRUE(jobs) << jobs.status().toString();
    std::set<std::string> found;
    for (const TuneJob &job : *jobs)
      EXPECT_TRUE(found.insert(job.problem).second) << job.problem;
    return std::pair(textsOf(*jobs), found);
  };
  const auto [forward, ofForward] = problems(TuneDirection::kForward);
  const auto [backward, ofBackward] = problems(TuneDirection::kBackward);
  const auto [both, ofBoth] = problems(TuneDirection::kBoth);
  const std::string call = "two nsa_bwd fp32 dense 1x128 ";
  for (const char *role :
       {"gates", "dq_cmp", "dq_slots", "dq_win", "dkv_cmp", "dkv_sel", "dkv_win", "index_fill", "dx"})
    EXPECT_TRUE(std::ranges::count(backward, call + role)) << role;
  // The gradient computes again what the forward pass has not saved, with the same kernels.
  for (const char *role : {"compress", "cmp", "sel", "win"}) {
    EXPECT_TRUE(std::ranges::count(backward, call + role)) << role;
    EXPECT_FALSE(std::ranges::count(both, call + role)) << role;
  }
  for (const std::string &text : backward)
    EXPECT_TRUE(text.starts_with(call)) << text;
  EXPECT_TRUE(std::ranges::equal(forward, std::span(both).first(forward.size()))) << "the forward pass comes first";
  std::set<std::string> all = ofForward;
  all.insert(ofBackward.begin(), ofBackward.end());
  EXPECT_EQ(ofBoth, all);
}

TEST(TuneJobs, BackwardThereIsACallWithAGradient) {
  const Scratch scratch;
  const auto expanded = [&](const std::string &text, TuneDirection direction) {
    Result<Workload> workload = readWorkload(scratch.write("w.json", text));
    EXPECT_TRUE(workload) << workload.status().toString();
    workload->direction = direction;
    return expand({*workload});
  };
  const std::string decode = with(R"("decode": {"lengths": [64]})");
  const std::string error = expanded(decode, TuneDirection::kBackward).status().toString();
  EXPECT_NE(error.find("direction = backward: must be forward or both: no call of the workload w has a gradient"),
            std::string::npos)
      << error;
  EXPECT_EQ(textsOf(*expanded(decode, TuneDirection::kBoth)), textsOf(*expanded(decode, TuneDirection::kForward)));
  // Of single plans each has its gradient, and a gradient is one.
  const std::string plans = R"({"name": "w", "plans": [
    {"op": "window", "batch": 1, "seqlen_q": 64, "seqlen_k": 64,
     "config": {"query_heads": 2, "kv_heads": 1, "qk_dim": 16, "window": 32}},
    {"op": "select", "batch": 1, "seqlen_q": 64, "seqlen_k": 64, "config": {"query_heads": 2, "kv_heads": 1, "qk_dim": 16}},
    {"op": "dense_bwd", "batch": 1, "seqlen_q": 64, "seqlen_k": 64, "config": {"query_heads": 2, "kv_heads": 1, "qk_dim": 16}}
  ]})";
  std::set<Operator> calls;
  const Result<std::vector<TuneJob>> jobs = expanded(plans, TuneDirection::kBackward);
  ASSERT_TRUE(jobs) << jobs.status().toString();
  for (const TuneJob &job : *jobs)
    calls.insert(job.spec.op);
  EXPECT_EQ(calls, (std::set{Operator::kDenseBwd, Operator::kWindowBwd}));
}

TEST(TuneJobs, AnErrorNamesTheHead) {
  const Scratch scratch;
  const std::string path = scratch.write("w.json", with(R"("decode": {"lengths": [64], "page_sizes": [0, 100]})"));
  const Result<Workload> workload = readWorkload(path);
  ASSERT_TRUE(workload) << workload.status().toString();
  const std::string error = expand({*workload}).status().toString();
  EXPECT_NE(error.find(path + ": decode of heads[0]: page_size = 100: must be a multiple of sel_block = 64"),
            std::string::npos)
      << error;
}

TEST(TuneJobs, TheReadyOnesAreGood) {
  const std::vector<std::string> names = readyWorkloads(NSA_WORKLOADS);
  EXPECT_EQ(names,
            (std::vector<std::string>{"deepseek", "gqa4", "llama3", "mha1", "mistral", "nsa128", "nsa192", "qwen3"}));
  for (const std::string &name : names) {
    const Result<Workload> workload = findWorkload(name, NSA_WORKLOADS);
    ASSERT_TRUE(workload) << workload.status().toString();
    EXPECT_EQ(workload->name, name);
    EXPECT_NE(workload->description, "");
    const Result<std::vector<TuneJob>> jobs = expand({*workload});
    ASSERT_TRUE(jobs) << jobs.status().toString();
    EXPECT_GT(jobs->size(), 100u) << name;
  }
}

const TuneJob &jobOf(const std::vector<TuneJob> &jobs, Operator op) {
  return *std::ranges::find_if(jobs, [&](const TuneJob &job) { return job.kernel.op == op; });
}

TEST(TimedWork, CountsWhatTheTimedShapeHasToDo) {
  const std::vector<TuneJob> jobs = expandText(with(R"("dtypes": ["bf16"], "prefill": {"lengths": [2048]})"));
  const std::optional<TimedWork> window = timedWork(jobOf(jobs, Operator::kWindow), true);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->cut, "");
  EXPECT_EQ(window->seqlenQ, 2048);
  // 512 queries with 1 to 512 keys, the others with 512; two products of 64 columns, 8 heads.
  EXPECT_DOUBLE_EQ(window->flops, 2.0 * 8 * (512 * 513 / 2.0 + 1536 * 512) * 128);
  EXPECT_DOUBLE_EQ(window->bytes, 2.0 * 2048 * (8 * 64 * 2 + 2 * 64 * 2)) << "q, out, k and v in bf16";
  const std::optional<TimedWork> compress = timedWork(jobOf(jobs, Operator::kCompress), true);
  ASSERT_TRUE(compress);
  EXPECT_EQ(compress->cut, "") << "it sees no query";
  EXPECT_EQ(compress->flops, 0);
  EXPECT_GT(compress->bytes, 2.0 * 2048 * 2 * 128);
}

// A prompt stays a triangle on a GPU: tiles of all lengths, many to a multiprocessor.
TEST(TimedWork, CutsKeysWithQueriesOnAGpu) {
  TuneJob job = jobOf(expandText(with(R"("dtypes": ["bf16"], "prefill": {"lengths": [524288]})")), Operator::kCmp);
  const auto timed = [&job](Operator op, int64_t seqlenQ, int64_t seqlenK, bool isGpu) {
    job.kernel.op = op;
    job.maxima.tokensQ = job.maxima.seqlenQ = seqlenQ;
    job.maxima.seqlenK = seqlenK;
    const std::optional<TimedWork> work = timedWork(job, isGpu);
    EXPECT_TRUE(work);
    return work ? std::pair(work->seqlenQ, work->seqlenK) : std::pair<int64_t, int64_t>();
  };
  const auto square = [](int64_t tokens) { return std::pair(tokens, tokens); };
  // 8 heads of 64: 4.4e12 operations each.
  EXPECT_EQ(timed(Operator::kDense, 524288, 524288, true), square(65536));
  EXPECT_EQ(timed(Operator::kCmp, 524288, 524288, true), square(262144));
  EXPECT_EQ(timed(Operator::kDense, 65536, 65536, true), square(65536)) << "fits";
  EXPECT_EQ(timed(Operator::kDense, 32768, 524288, true), std::pair(int64_t{8192}, int64_t{131072}))
      << "as steep as it was";
  job.kernel.window = 200000;
  EXPECT_EQ(timed(Operator::kWindow, 524288, 524288, true).second, 400000) << "keys that the window leaves behind";
  EXPECT_EQ(timed(Operator::kSel, 524288, 524288, true).second, 524288) << "blocks are selected from all keys";
  EXPECT_EQ(timed(Operator::kDense, 16384, 16384, false), std::pair(int64_t{64}, int64_t{16384}))
      << "a CPU's caches would hold fewer keys";
}

TEST(TimedWork, SaysWhenLessIsTimed) {
  const std::vector<TuneJob> jobs = expandText(with(R"("prefill": {"lengths": [1048576]})"));
  const std::optional<TimedWork> cmp = timedWork(jobOf(jobs, Operator::kCmp), true);
  ASSERT_TRUE(cmp);
  EXPECT_EQ(cmp->cut, "262144 of 1048576 queries over 262144 of 1048576 keys timed");
  EXPECT_LT(cmp->seqlenQ, 1048576);
  EXPECT_FALSE(timedWork(expandText(with(R"("decode": {"lengths": [4096]})")).front(), true))
      << "tables of sequences are no work that is counted";
}

} // namespace
} // namespace nsa::tools
