// What is asked of a crossover with dense attention, and what an answer says: nothing is measured here.
#include "autotune/workload/tune_crossover.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

Workload workloadOf(std::vector<int64_t> lengths, bool crossover = true) {
  Workload workload;
  workload.heads.push_back({"heads", {}});
  workload.heads.back().spec.op = Operator::kDecode; // as read from a file
  workload.heads.back().spec.queryHeads = 8;
  workload.heads.back().spec.kvHeads = 2;
  workload.heads.back().spec.qkDim = workload.heads.back().spec.vDim = 64;
  workload.prefill.emplace();
  workload.prefill->lengths = std::move(lengths);
  workload.prefill->layouts = {Layout::kDense, Layout::kPacked};
  workload.prefill->crossover = crossover;
  return workload;
}

// Milliseconds of both at lengths; a negative pair: no room there.
StoredRoute routeOf(const CrossoverJob &job, const std::vector<std::array<double, 2>> &times, int64_t threshold) {
  StoredRoute route{job.family, "device", kCrossoverRoute, threshold, "compiler=abc", {}};
  for (size_t i = 0; i < times.size(); ++i) {
    const auto [nsa, dense] = times[i];
    if (nsa < 0) {
      route.evidence.push_back({job.lengths[i], "nsa", 0, 0, "out of memory"});
      continue;
    }
    route.evidence.push_back({job.lengths[i], "nsa", nsa, nsa / dense, ""});
    route.evidence.push_back({job.lengths[i], "dense", dense, dense / nsa, ""});
  }
  return route;
}

TEST(TuneCrossover, IsAskedOncePerHeadAndType) {
  EXPECT_TRUE(crossoverJobs({workloadOf({64, 128}, false)}).empty());
  Workload decode = workloadOf({64});
  decode.prefill.reset();
  EXPECT_TRUE(crossoverJobs({decode}).empty());
  Workload two = workloadOf({128, 256});
  two.dtypes = {DType::kBf16, DType::kF32};
  const std::vector<CrossoverJob> jobs = crossoverJobs({workloadOf({64, 128}), two});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].text(), "heads bf16 1x64 to 1x256");
  EXPECT_EQ(jobs[0].lengths, (std::vector<int64_t>{64, 128, 256})) << "of both that ask";
  EXPECT_EQ(jobs[1].text(), "heads fp32 1x128 to 1x256");
  EXPECT_EQ(jobs[0].spec.layout, Layout::kDense);
  EXPECT_NE(jobs[0].family, jobs[1].family);
  Workload wide = workloadOf({64});
  wide.heads[0].spec.window = 77;
  EXPECT_NE(crossoverJobs({wide})[0].family, jobs[0].family) << "the window takes its time";
  EXPECT_EQ(jobs[0].family,
            "nsa batch=1 {\"dtype\":\"bf16\",\"query_heads\":8,\"kv_heads\":2,\"qk_dim\":64,\"v_dim\":64}");
  Spec packed = jobs[0].spec;
  packed.layout = Layout::kPacked;
  EXPECT_EQ(crossoverFamily(packed, 1), jobs[0].family);
  for (void (*change)(Spec &) :
       {+[](Spec &spec) { spec.gate = Gate::kSoftmax; }, +[](Spec &spec) { spec.initBlocks = 0; },
        +[](Spec &spec) { spec.localBlocks = 3; }, +[](Spec &spec) { spec.branches = kBranchWin; },
        +[](Spec &spec) {
          spec.cmpKind = CmpKind::kMlp;
          spec.mlpHidden = 16;
        }}) {
    Workload other = workloadOf({64});
    change(other.heads[0].spec);
    EXPECT_NE(crossoverJobs({other})[0].family, jobs[0].family) << crossoverJobs({other})[0].family;
  }
}

TEST(TuneCrossover, TakesAsLongAsTheSquareOfTheLength) {
  EXPECT_DOUBLE_EQ(secondsAt(2048, 1024, 0.5), 2);
  EXPECT_DOUBLE_EQ(secondsAt(65536, 1024, 0.001), 4.096);
}

TEST(TuneCrossover, IsAskedWhereAKernelOfTheForwardIs) {
  const auto limited = [](std::vector<int64_t> lengths, std::set<Operator> operators) {
    Workload workload = workloadOf(std::move(lengths));
    workload.operators = std::move(operators);
    return crossoverJobs({workload}).size();
  };
  EXPECT_EQ(limited({64, 128}, {Operator::kCombine}), 1u);
  EXPECT_EQ(limited({64, 128}, {Operator::kAppend, Operator::kSplitCmp}), 0u) << "decode's";
  EXPECT_EQ(limited({64, 128}, {Operator::kWindow}), 0u) << "the window holds all keys";
  EXPECT_EQ(limited({64, 8192}, {Operator::kWindow}), 1u);
}

TEST(TuneCrossover, IsOfTheForwardPass) {
  Workload workload = workloadOf({64, 128});
  workload.direction = TuneDirection::kBoth;
  EXPECT_EQ(crossoverJobs({workload}).size(), 1u);
  workload.direction = TuneDirection::kBackward;
  EXPECT_TRUE(crossoverJobs({workload}).empty());
}

TEST(TuneCrossover, AnAnswerHoldsForItsLengthsAndCompiler) {
  const CrossoverJob job = crossoverJobs({workloadOf({64, 128, 256, 512})}).front();
  const StoredRoute never = routeOf(job, {{{2, 1}, {2, 1}, {2, 1}, {2, 1}}}, StoredRoute::kNever);
  EXPECT_TRUE(answers(never, job, "abc"));
  EXPECT_FALSE(answers(never, job, "abd")) << "of another compiler";
  CrossoverJob longer = job;
  longer.lengths.push_back(1024);
  EXPECT_FALSE(answers(never, longer, "abc")) << "it may be there";
  CrossoverJob between = job;
  between.lengths = {64, 100};
  EXPECT_FALSE(answers(never, between, "abc"));
  EXPECT_FALSE(answers(routeOf(job, {}, StoredRoute::kNever), job, "abc"));
  // Found after two lengths, or ended by a length that has no room: longer ones have nothing to add.
  EXPECT_TRUE(answers(routeOf(job, {{{1, 2}, {1, 2}}}, 64), longer, "abc"));
  EXPECT_TRUE(answers(routeOf(job, {{{2, 1}, {-1, -1}}}, StoredRoute::kNever), longer, "abc"));
}

TEST(TuneCrossover, SaysFromWhere) {
  const CrossoverJob job = crossoverJobs({workloadOf({64, 128, 256, 512})}).front();
  nlohmann::ordered_json record = crossoverRecord(job, nullptr);
  EXPECT_EQ(record["text"], "not measured");
  StoredRoute route = routeOf(job, {{{2, 1}, {3, 2}, {4, 3}}}, StoredRoute::kNever);
  record = crossoverRecord(job, &route);
  EXPECT_EQ(record["text"], "never within the lengths measured, up to 256 tokens");
  EXPECT_TRUE(record["from"].is_null());
  EXPECT_EQ(record["times"][2], (nlohmann::ordered_json{{"tokens", 256}, {"nsa_ms", 4.0}, {"dense_ms", 3.0}}));
  // Won at 64 and lost again at 128: from 256 on.
  route = routeOf(job, {{{1, 2}, {2, 1}, {2, 4}, {2, 8}}}, 256);
  record = crossoverRecord(job, &route);
  EXPECT_EQ(record["from"], 256);
  EXPECT_EQ(record["interpolated"], 181);
  EXPECT_EQ(record["text"], "at 256 tokens, about 181 by interpolation");
  route = routeOf(job, {{{2, 1}, {-1, -1}}}, StoredRoute::kNever);
  record = crossoverRecord(job, &route);
  EXPECT_EQ(record["text"], "never within the lengths measured, up to 64 tokens");
  EXPECT_EQ(record["ended"], "128 tokens: out of memory");
}

} // namespace
} // namespace nsa::tools
