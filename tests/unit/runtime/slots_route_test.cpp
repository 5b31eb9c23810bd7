// Which way the gradient of the queries of `sel` is computed: by the rule, or as a stored threshold says.
#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/routing.h"
#include "runtime/engine/report/describe.h"

#include <gtest/gtest.h>
#include <tuple>
#include <vector>

namespace nsa {
namespace {

Spec gradientOf(Operator op, int32_t group) {
  Spec spec;
  spec.op = op;
  spec.kvHeads = 2;
  spec.queryHeads = 2 * group;
  spec.qkDim = spec.vDim = 128;
  return spec;
}
Maxima tokens(int64_t count) { return {.batch = 1, .tokensQ = count, .seqlenQ = count, .seqlenK = count}; }

bool takesSlotsIn(const Spec &spec, int64_t count, const RouteRules &rules = {}, const FindRoute &find = nullptr) {
  const Routing routing = routingOf(spec, tokens(count), rules, find);
  bool hasSlots = false, hasQueries = false;
  for (const Step &step : routing.steps()) {
    hasSlots |= step.spec.op == Operator::kSelDqSlots;
    hasQueries |= step.spec.op == Operator::kSelDq;
  }
  EXPECT_NE(hasSlots, hasQueries);
  return hasSlots;
}

TEST(SlotsRoute, TheRuleTakesSlotsForSmallGroups) {
  for (const Operator op : {Operator::kSelBwd, Operator::kNsaBwd}) {
    EXPECT_TRUE(takesSlotsIn(gradientOf(op, 1), 4096));
    EXPECT_TRUE(takesSlotsIn(gradientOf(op, 4), 4096));
    EXPECT_FALSE(takesSlotsIn(gradientOf(op, 5), 4096));
  }
  // Keys and values of a block do not fit in the shared memory of every GPU.
  Spec wide = gradientOf(Operator::kSelBwd, 1);
  wide.dtype = DType::kF32;
  EXPECT_FALSE(takesSlotsIn(wide, 4096));
  // 64 queries of each of many sequences have more slots than a chunk holds.
  Spec heads = gradientOf(Operator::kSelBwd, 4);
  Maxima many = tokens(4096);
  EXPECT_TRUE(takesSlots(heads, many));
  many.batch = 1024;
  EXPECT_FALSE(takesSlots(heads, many));
  heads.layout = Layout::kPacked;
  EXPECT_TRUE(takesSlots(heads, many));
}

TEST(SlotsRoute, AStoredThresholdDecides) {
  for (const Operator op : {Operator::kSelBwd, Operator::kNsaBwd})
    for (const int32_t group : {1, 16}) {
      const Spec spec = gradientOf(op, group);
      int64_t threshold = 4096;
      const FindRoute find = [&](const std::string &family, const std::string &name) -> std::optional<StoredRoute> {
        Spec queries = spec;
        queries.op = Operator::kSelDq;
        if (name != kSlotsRoute || family != routeFamily(queries))
          return std::nullopt;
        StoredRoute route;
        route.threshold = threshold;
        return route;
      };
      EXPECT_FALSE(takesSlotsIn(spec, 2048, {}, find));
      EXPECT_TRUE(takesSlotsIn(spec, 4096, {}, find));
      EXPECT_EQ(takesSlotsIn(spec, 4096, {.ignoreThresholds = true}, find), group == 1);
      threshold = StoredRoute::kNever;
      EXPECT_FALSE(takesSlotsIn(spec, 65536, {}, find));
    }
}

// What was measured for one sequence says nothing about memory for many, or for large blocks.
TEST(SlotsRoute, AStoredThresholdDecidesOnlyWhereSlotsAreAllowed) {
  const FindRoute always = [](const std::string &, const std::string &) -> std::optional<StoredRoute> {
    StoredRoute route;
    route.threshold = 1;
    return route;
  };
  Spec wide = gradientOf(Operator::kSelBwd, 16);
  EXPECT_TRUE(takesSlotsIn(wide, 4096, {}, always));
  wide.dtype = DType::kF32;
  EXPECT_FALSE(takesSlotsIn(wide, 4096, {}, always)) << "the keys and values of a block take 64 KiB";
  const Spec heads = gradientOf(Operator::kSelBwd, 16);
  Maxima many = tokens(4096);
  many.batch = 256;
  many.tokensQ = many.batch * many.seqlenQ;
  const Routing routing = routingOf(heads, many, {}, always);
  EXPECT_FALSE(routing.spec.dqSlots) << "64 queries of each sequence take 6 GiB";
  EXPECT_FALSE(routing.slots) << "it decided nothing";
  // The gradients of 128 sequences take 2 GiB by themselves, and the means of keys half as much.
  many.batch = 64;
  EXPECT_TRUE(mayTakeSlots(heads, many));
  many.batch = 128;
  EXPECT_FALSE(mayTakeSlots(heads, many));
}

TEST(SlotsRoute, ItemsHave1024PairsOr64Entries) {
  for (const auto &[group, entries] : {std::pair(1, 512), {2, 512}, {3, 256}, {4, 256}, {16, 64}, {128, 64}})
    EXPECT_EQ(slotQueries(gradientOf(Operator::kSelBwd, group), 512), entries) << group << " heads of a group";
  EXPECT_EQ(slotQueries(gradientOf(Operator::kSelBwd, 4), 64), 64) << "no more entries than an item of the index";
}

// What the launch of a plan asks of the kernel: as many programs for each block as its items, and all queries of a
// chunk.
TEST(SlotsRoute, ItemsHoldAllQueriesOfAChunk) {
  for (const Operator op : {Operator::kSelBwd, Operator::kNsaBwd}) {
    const Spec spec = gradientOf(op, 4);
    const Routing routing = routingOf(spec, tokens(4096), {}, nullptr);
    const std::vector<Step> steps = routing.steps();
    const auto step = std::ranges::find(steps, Operator::kSelDqSlots, [](const Step &each) { return each.spec.op; });
    ASSERT_NE(step, steps.end());
    for (const int64_t queries : {2432, 2433, 100}) {
      KernelCall call;
      setScalar(call.scalars, Scalar::kItemQueries, 1024);
      call.grid.maxSeqlenQ = queries;
      step->node->prepare(call, spec, {}, {});
      const auto item = static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kItemQueries)]);
      EXPECT_EQ(item, 256);
      EXPECT_EQ(call.grid.splits, (queries + 255) / 256);
      EXPECT_EQ(static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kSplits)]), call.grid.splits);
    }
  }
}

// The one route of a plan.
RouteDescription routeOf(const Spec &spec, const Maxima &maxima, const RouteRules &rules, const FindRoute &find) {
  const Routing routing = routingOf(spec, maxima, rules, find);
  std::vector<RouteDescription> routes;
  for (const Step &step : routing.steps())
    if (RouteDescription route = describeRoute(routing, step); !route.name.empty())
      routes.push_back(std::move(route));
  EXPECT_EQ(routes.size(), 1u);
  return routes.empty() ? RouteDescription() : routes.front();
}

TEST(SlotsRoute, IsExplained) {
  int64_t threshold = 4096;
  const FindRoute find = [&](const std::string &, const std::string &) -> std::optional<StoredRoute> {
    StoredRoute route;
    route.threshold = threshold;
    return route;
  };
  const auto contains = [](const std::string &text, const char *part) { return text.find(part) != std::string::npos; };
  for (const Operator op : {Operator::kSelBwd, Operator::kNsaBwd}) {
    const Spec spec = gradientOf(op, 1);
    for (const auto &[count, name, other] :
         {std::tuple(2048, kQueriesVariant, kSlotsVariant), {8192, kSlotsVariant, kQueriesVariant}}) {
      const RouteDescription route = routeOf(spec, tokens(count), {}, find);
      EXPECT_EQ(route.name, name);
      EXPECT_EQ(route.other, other);
      EXPECT_EQ(route.source, kSlotsRoute);
      ASSERT_TRUE(route.threshold);
      EXPECT_EQ(route.threshold->way, kSlotsVariant);
      EXPECT_EQ(route.threshold->side, PayingSide::kFrom);
      EXPECT_EQ(route.threshold->keys, 4096);
      EXPECT_TRUE(contains(route.why, "from the threshold on")) << route.why;
    }
    threshold = StoredRoute::kNever;
    const RouteDescription never = routeOf(spec, tokens(8192), {}, find);
    EXPECT_EQ(never.name, kQueriesVariant);
    EXPECT_TRUE(contains(never.why, "at no length")) << never.why;
    threshold = 4096;
    const RouteDescription forced = routeOf(spec, tokens(8192), {.forceVariant = std::string(kQueriesVariant)}, find);
    EXPECT_EQ(forced.name, kQueriesVariant);
    EXPECT_EQ(forced.source, "force_variant");
    EXPECT_FALSE(forced.threshold);
    Spec wide = spec;
    wide.dtype = DType::kF32;
    for (const auto &[ruled, name, why] : {std::tuple(spec, kSlotsVariant, "small group"),
                                           {gradientOf(op, 16), kQueriesVariant, "large group"},
                                           {wide, kQueriesVariant, "shared memory"}}) {
      const RouteDescription route = routeOf(ruled, tokens(8192), {}, {});
      EXPECT_EQ(route.name, name);
      EXPECT_EQ(route.source, "rule");
      EXPECT_TRUE(contains(route.why, why)) << route.why;
      EXPECT_FALSE(route.threshold);
    }
  }
}

TEST(SlotsRoute, AForcedWayIsTaken) {
  const Spec spec = gradientOf(Operator::kSelBwd, 16);
  EXPECT_TRUE(takesSlotsIn(spec, 4096, {.forceVariant = std::string(kSlotsVariant)}));
  EXPECT_FALSE(takesSlotsIn(gradientOf(Operator::kSelBwd, 1), 4096, {.forceVariant = std::string(kQueriesVariant)}));
}

} // namespace
} // namespace nsa
