// `decide` on stored rows that are in memory: it changes nothing, opens no compiler, and says what it must know.
#include "runtime/base/compiler_revision.h"
#include "runtime/engine/choices/decision.h"
#include "runtime/engine/choices/routes.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

// Any call that is for the execution of a decision fails the test.
class RowsInMemory final : public ChoiceSource {
public:
  std::optional<Hit> find(const std::string &problem, const std::string &device) override {
    for (const Hit &hit : hits)
      if (hit.choice.problem == problem && hit.choice.device == device)
        return hit;
    return std::nullopt;
  }
  std::vector<ChoiceSummary> choicesOf(const std::string &) override {
    std::vector<ChoiceSummary> summaries;
    for (const Hit &hit : hits)
      summaries.push_back({hit.choice.problem, hit.choice.device, hit.choice.content, hit.choice.tuned, "cpu",
                           Manifest::parse(hit.kernel.manifest)->templateName, "tile=16", 0});
    return summaries;
  }
  std::optional<StoredRoute> findRoute(const std::string &, const std::string &, const std::string &name) override {
    return threshold && threshold->name == name ? threshold : std::nullopt;
  }
  void open() override { ADD_FAILURE() << "opened"; }
  void noteUse(const Hit &) override { ADD_FAILURE() << "used"; }
  bool takesChoices() const override { return true; }
  std::string layerPath(int) override { return ""; }
  std::string places() override { return ""; }
  std::string trouble() const override { return ""; }

  std::vector<Hit> hits;
  std::optional<StoredRoute> threshold;
};

class DecideTest : public testing::Test {
protected:
  DecideTest() {
    spec.queryHeads = spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 16;
    request = {.task = operatorTask(spec, maxima), .device = test::cpuDeviceKey(), .target = "cpu"};
    policy.checkLaunch = [](const SharedManifest &, const KernelTask &) { return Status::ok(); };
  }
  void store(int64_t seqlenK, const std::string &revision, bool tuned = true) {
    Manifest manifest = *Manifest::parse(test::manifestOf({.templateName = "attention"}, spec));
    manifest.evidence["compiler"] = revision;
    Maxima most = maxima;
    most.seqlenK = seqlenK;
    StoredChoice choice;
    choice.problem = Problem::make(spec, most).key();
    choice.device = request.device;
    choice.content = "content" + std::to_string(seqlenK);
    choice.tuned = tuned;
    rows.hits.push_back({choice, {choice.content, manifest.serialize(), test::codeOf({0xc3})}, 0});
  }
  Decision decided() {
    Decision first = decide(request, rows, policy);
    const Decision again = decide(request, rows, policy);
    EXPECT_EQ(first.action, again.action) << "the same request gives the same decision";
    EXPECT_EQ(first.reasons, again.reasons);
    return first;
  }

  Spec spec;
  const Maxima maxima{1, 64, 64, 64};
  RowsInMemory rows;
  KernelRequest request;
  ChoicePolicy policy;
  const std::string own{compilerRevision()};
};

using enum Decision::Action;

TEST_F(DecideTest, AKernelOfAnotherRevisionAsksForTheCompiler) {
  store(64, "older");
  EXPECT_EQ(decided().action, kAsk);
  request.compilerRevision = ""; // there is none
  EXPECT_EQ(decided().action, kLoad);
  request.compilerRevision = "older"; // the library of an older build
  EXPECT_EQ(decided().action, kLoad);
  request.compilerRevision = own;
  EXPECT_EQ(decided().action, kRemake);
  request.compilerRevision.reset();
  policy.miss = MissPolicy::kFail; // opens no compiler
  EXPECT_EQ(decided().action, kLoad);
}

// Plans of one process must not have one kernel now and another one later.
TEST_F(DecideTest, AKernelOfAnotherRevisionServesMeanwhileOnlyWhereItMay) {
  policy.waits = false;
  store(64, "older");
  EXPECT_EQ(decided().action, kLoad);
  EXPECT_TRUE(decided().outdated);
  request.task.mayBeOutdated = false;
  EXPECT_EQ(decided().action, kAsk);
  request.compilerRevision = own;
  EXPECT_EQ(decided().action, kRemake);
}

TEST_F(DecideTest, AKernelOfThisRevisionAsksForNothing) {
  store(64, own);
  const Decision decision = decided();
  EXPECT_EQ(decision.action, kLoad);
  EXPECT_TRUE(decision.isStoredChoice());
  EXPECT_FALSE(decision.threshold);
}

TEST_F(DecideTest, TheThresholdAndTheCandidatesAreOfTheDecision) {
  rows.threshold = StoredRoute{routeFamily(spec), request.device, attentionRoute(spec.op), 100, "", {}};
  request.candidates = {{"attention", "tile=64", 1}, {std::string(kSimpleTemplate), "tile=32", 2}};
  Decision decision = decided();
  EXPECT_EQ(decision.action, kCompile);
  EXPECT_EQ(decision.threshold->threshold, 100);
  EXPECT_EQ(decision.simple, true);
  ASSERT_EQ(decision.candidates.size(), 2u);
  EXPECT_EQ(decision.candidates[0].templateName, kSimpleTemplate);
  policy.miss = MissPolicy::kTune;
  decision = decided();
  EXPECT_EQ(decision.action, kTune);
  EXPECT_EQ(decision.candidates[0].templateName, "attention") << "a tuning measures both sides of a threshold";
  store(64, own);
  EXPECT_FALSE(decided().threshold) << "not needed";
  request.explains = true;
  EXPECT_EQ(decided().threshold->threshold, 100);
}

TEST_F(DecideTest, WhatFailedIsPassedOver) {
  store(64, own);
  store(128, own);
  Decision decision = decided();
  ASSERT_EQ(decision.action, kLoad);
  request.unloadable.push_back({decision.stored->kernel.content, decision.stored->kernel.manifest,
                                Status::error(ErrorCode::kInternal, "no room")});
  decision = decided();
  EXPECT_EQ(decision.step, FallbackStep::kNearest);
  EXPECT_EQ(decision.difference, "seqlen_k=128 instead of 64, window=128 instead of 64");
  EXPECT_NE(decision.reasons.at(0).find("no room"), std::string::npos);
  request.compiling = Status::error(ErrorCode::kUnavailable, "no compiler");
  rows.hits.clear();
  decision = decided();
  EXPECT_EQ(decision.action, kFail);
  EXPECT_EQ(decision.failure.error().message, "no compiler");
}

} // namespace
} // namespace nsa
