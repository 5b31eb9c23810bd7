// The map of plans: its key says the same as the database's, and readers on many threads never see another problem's
// core while writers add and replace.
#include "runtime/engine/plan/plan_map.h"

#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/graph/routing.h"
#include "tests/harness/seed.h"

#include <atomic>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <thread>

using namespace nsa;

namespace {

struct Request {
  Spec spec;
  Maxima maxima;
  PlanKey key() const { return PlanKey::make(spec, maxima); }
  // The keys of the operator's kernels, in order, as an engine without measured thresholds routes them.
  std::string text() const {
    std::string text = std::string(operatorName(spec.op)) + ":";
    for (const Step &step : routingOf(spec, maxima, {}).steps())
      text += " " + Problem::make(step.spec, step.maxima).key() + ";";
    return text;
  }
};

Request draw(std::mt19937_64 &random) {
  auto upTo = [&](int64_t bits) { // log-uniform, and often next to a power of two
    int64_t power = int64_t{1} << (random() % static_cast<uint64_t>(bits));
    return std::max<int64_t>(1, power + static_cast<int64_t>(random() % 3) - 1);
  };
  Request request;
  Spec &spec = request.spec;
  constexpr Operator kOperators[] = {Operator::kDense,     Operator::kWindow, Operator::kCompress, Operator::kCmp,
                                     Operator::kSelect,    Operator::kSel,    Operator::kCombine,  Operator::kNsa,
                                     Operator::kDecode,    Operator::kNsaBwd, Operator::kSelBwd,   Operator::kDenseBwd,
                                     Operator::kWindowBwd, Operator::kCmpBwd};
  spec.op = kOperators[random() % std::size(kOperators)];
  spec.cmpStride = random() % 2 ? 1 : 2;
  spec.cmpBlock = spec.cmpStride * (random() % 2 ? 1 : 2);
  spec.selBlock = spec.cmpStride * (random() % 2 ? 2 : 4);
  spec.selCount = random() % 2 ? 3 : 4;
  spec.cmpKind = static_cast<CmpKind>(random() % 3);
  spec.mlpHidden = random() % 2 ? 1 : 8;
  spec.mlpActivation = static_cast<Activation>(random() % 3);
  spec.gate = static_cast<Gate>(random() % 3);
  spec.gatePerGroup = random() % 2;
  spec.branches = static_cast<int32_t>(1 + random() % 7);
  spec.dtype = static_cast<DType>(random() % 3);
  spec.makeIndex = spec.op == Operator::kSelect || (spec.op == Operator::kNsa && spec.hasBranch(kBranchSel));
  spec.makeIndex &= random() % 2 == 0;
  if (spec.op == Operator::kDecode) {
    spec.pageSize = spec.selBlock * static_cast<int32_t>(random() % 3);
    spec.batchInvariant = random() % 4 == 0;
  }
  spec.layout = random() % 2 ? Layout::kDense : Layout::kPacked;
  spec.kvHeads = static_cast<int32_t>(1 + random() % 5);
  spec.queryHeads = spec.kvHeads * static_cast<int32_t>(1 + random() % 3);
  constexpr int32_t kDims[] = {32, 64, 128};
  spec.qkDim = kDims[random() % std::size(kDims)];
  spec.vDim = kDims[random() % std::size(kDims)];
  spec.window = static_cast<int32_t>(upTo(8));
  spec.scale = random() % 2 ? 0.0f : 0.5f;
  request.maxima = {.batch = upTo(3), .tokensQ = upTo(6), .seqlenQ = upTo(6), .seqlenK = upTo(7)};
  request.maxima.seqlenK = std::max(request.maxima.seqlenK, request.maxima.seqlenQ); // as every operator allows
  return request;
}

TEST(PlanKey, IsEqualExactlyWhereTheProblemsTextIs) {
  std::mt19937_64 random(test::freshSeed());
  std::map<std::string, PlanKey> keys;
  size_t met = 0;
  for (int i = 0; i < 100000; ++i) {
    Request request = draw(random);
    auto [entry, isNew] = keys.emplace(request.text(), request.key());
    ASSERT_EQ(entry->second, request.key()) << request.text();
    ASSERT_EQ(entry->second.hash(), request.key().hash());
    met += !isNew;
  }
  EXPECT_GT(met, 300u) << "requests of one problem must meet";
  std::map<size_t, std::string> texts; // distinct texts have distinct keys; their hashes collide next to never
  for (const auto &[text, key] : keys)
    EXPECT_TRUE(texts.emplace(key.hash(), text).second) << text << " and " << texts[key.hash()];
}

// The slots of the gradient of the queries exceed their limit within a bucket of batches, and within one of heads.
TEST(PlanKey, TheGradientOfQueriesGoesOneWayWithinABucket) {
  Request request;
  Spec &spec = request.spec;
  spec.qkDim = spec.vDim = 128;
  for (const Operator op : {Operator::kSelBwd, Operator::kNsaBwd})
    for (const int64_t most : {256, 512, 1024}) {
      spec.op = op;
      std::map<std::string, PlanKey> keys;
      for (int64_t batch = most / 2 + 1; batch <= most; batch += most / 8 - 1)
        for (int32_t heads = 5; heads <= 8; ++heads) {
          spec.kvHeads = spec.queryHeads = heads;
          request.maxima = {.batch = batch, .tokensQ = 128 * batch, .seqlenQ = 128, .seqlenK = 128};
          keys.emplace(request.text(), request.key());
        }
      EXPECT_EQ(keys.size(), 1u) << operatorName(op) << ", up to " << most << " sequences";
    }
}

// A core that says which problem it belongs to: all of a plan's parts but their kernels, which the map does not touch.
std::shared_ptr<const PlanCore> coreOf(int problem, int version) {
  auto core = std::make_shared<PlanCore>();
  core->parts.resize(1);
  core->parts[0].step.spec.qkDim = problem;
  core->parts[0].step.spec.vDim = version;
  return core;
}

PlanKey keyOf(int problem) {
  Request request;
  request.spec.queryHeads = request.spec.kvHeads = 1;
  request.spec.qkDim = 1 + problem;
  request.spec.vDim = 1;
  request.maxima = {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 1};
  return request.key();
}

TEST(PlanMap, ReadersSeeTheirOwnProblemWhileWritersAddAndReplace) {
  constexpr int kProblems = 3000, kReaders = 4, kVersions = 3;
  PlanMap map;
  std::atomic<int> known = 0; // problems below it are in the map
  std::atomic<bool> done = false;
  std::atomic<size_t> wrong = 0, lost = 0;
  {
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < kReaders; ++reader)
      readers.emplace_back([&, reader] {
        std::mt19937_64 random(static_cast<uint64_t>(reader));
        while (!done) {
          const int present = known, problem = static_cast<int>(random() % kProblems);
          const PlanCore *core = map.find(keyOf(problem));
          lost += !core && problem < present;
          wrong += core && core->parts[0].step.spec.qkDim != problem;
        }
      });
    for (int version = 1; version <= kVersions; ++version)
      for (int problem = 0; problem < kProblems; ++problem) {
        map.put(keyOf(problem), coreOf(problem, version));
        known = std::max<int>(known, problem + 1);
      }
    done = true;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(lost, 0u);
  for (int problem = 0; problem < kProblems; ++problem)
    EXPECT_EQ(map.find(keyOf(problem))->parts[0].step.spec.vDim, kVersions);
  EXPECT_EQ(map.find(keyOf(kProblems)), nullptr);
}

TEST(PlanMap, ReplacesOnlyWhatIsExpected) {
  PlanMap map;
  const PlanCore *first = map.put(keyOf(1), coreOf(1, 1));
  ASSERT_TRUE(map.replace(keyOf(1), first, coreOf(1, 2)));
  const PlanCore *second = map.find(keyOf(1));
  EXPECT_EQ(second->parts[0].step.spec.vDim, 2);
  EXPECT_FALSE(map.replace(keyOf(1), first, coreOf(1, 3)));
  EXPECT_EQ(map.find(keyOf(1)), second);
  EXPECT_EQ(first->parts[0].step.spec.vDim, 1) << "it stays valid";
}

// Each thread counts one up, as often as another was faster.
TEST(PlanMap, NoReplacementIsLost) {
  constexpr int kThreads = 4, kTimes = 500;
  PlanMap map;
  map.put(keyOf(1), coreOf(1, 0));
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < kTimes; ++i)
          for (bool isDone = false; !isDone;) {
            const PlanCore *present = map.find(keyOf(1));
            isDone = map.replace(keyOf(1), present, coreOf(1, present->parts[0].step.spec.vDim + 1));
          }
      });
  }
  EXPECT_EQ(map.find(keyOf(1))->parts[0].step.spec.vDim, kThreads * kTimes);
}

} // namespace
