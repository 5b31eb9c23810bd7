// Which plans of decode take the kernel `decode_step`, what they launch with it, and what their workspace holds.
#include "runtime/engine/graph/plan_key.h"
#include "runtime/engine/graph/routing.h"
#include "runtime/engine/options/options.h"
#include "runtime/engine/report/describe.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace nsa {
namespace {

Spec specOf(CmpKind kind = CmpKind::kMean) {
  Spec spec;
  spec.op = Operator::kDecode;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = spec.vDim = 128;
  spec.cmpKind = kind;
  spec.mlpHidden = 64;
  return spec;
}
Maxima token(int64_t batch, int64_t keys) { return {.batch = batch, .tokensQ = batch, .seqlenQ = 1, .seqlenK = keys}; }
const RouteRules kForced{.forceVariant = std::string(kStepVariant)};

std::string launchesOf(const Spec &spec, const Maxima &maxima, const RouteRules &rules = kForced) {
  std::string text;
  for (const Step &step : routingOf(spec, maxima, rules).steps())
    text += (text.empty() ? "" : " ") + std::string(operatorName(step.spec.op));
  return text;
}

Step stepOf(const Spec &spec, const Maxima &maxima) {
  const std::vector<Step> steps = routingOf(spec, maxima, kForced).steps();
  EXPECT_EQ(steps.back().role, Role::kStep);
  return steps.back();
}

TEST(DecodeStep, IsOneLaunch) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const int32_t pageSize : {0, 256})
      for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
        Spec spec = specOf(kind);
        spec.layout = layout;
        spec.pageSize = pageSize;
        EXPECT_EQ(launchesOf(spec, token(8, 65536)), "decode_step");
        EXPECT_EQ(launchesOf(spec, token(8, 100)), "decode_step") << "no shortcut is needed";
        for (const int32_t branch : {kBranchSel, kBranchWin}) {
          spec.branches = branch;
          EXPECT_EQ(launchesOf(spec, token(8, 65536)), "decode_step");
        }
      }
}

// What the kernel compresses with.
TEST(DecodeStep, TakesTheWeightsOfCompression) {
  const Step step = stepOf(specOf(CmpKind::kMlp), token(8, 65536));
  for (const Operand &operand : operandsOf(Operator::kCompress))
    if (tensorRule(operand.name).part != TensorPart::kWhole && tensorRule(operand.name).part != TensorPart::kImportance)
      EXPECT_TRUE(std::ranges::any_of(step.arguments, [&](const Binding &binding) {
        return binding.view == operand.view && binding.tensor == operand.name;
      })) << tensorName(operand.name);
}

// Where the device runs the kernel, it does each step that it serves, unless an option names something else.
TEST(DecodeStep, IsTakenWhereTheDeviceRunsIt) {
  const auto kernels = [](const RouteRules &rules) {
    const Routing routing = routingOf(specOf(), token(8, 65536), rules);
    EXPECT_EQ(routing.mayAvoidStep(), routing.steps().back().role == Role::kStep);
    return routing.steps().size();
  };
  EXPECT_EQ(kernels({.mayStep = true}), 1u);
  EXPECT_EQ(kernels({.ignoreThresholds = true, .mayStep = true}), 1u);
  EXPECT_EQ(kernels({}), 10u);
  EXPECT_EQ(kernels({.decodeSplits = 3, .mayStep = true}), 10u);
  EXPECT_EQ(kernels({.mayStep = true, .forceVariant = std::string(kTiledTemplate)}), 10u);
  const Routing routing = routingOf(specOf(), token(8, 65536), {.mayStep = true});
  EXPECT_EQ(describeRoute(routing, routing.steps().front()).source, "rule");
}

TEST(DecodeStep, IsTakenWhereItIsNamedAndASequenceHasFewNewTokens) {
  const std::string splits = "cache_sequences append compress split_cmp scores rank choose ascend split_sel_win merge";
  EXPECT_EQ(launchesOf(specOf(), token(8, 65536), {}), splits);
  EXPECT_EQ(launchesOf(specOf(), token(8, 65536), {.forceVariant = std::string(kSlotsVariant)}), splits);
  const auto tokens = [](int64_t count) {
    return Maxima{.batch = 8, .tokensQ = 8 * count, .seqlenQ = count, .seqlenK = 65536};
  };
  EXPECT_EQ(launchesOf(specOf(), tokens(8)), "decode_step");
  EXPECT_EQ(launchesOf(specOf(), tokens(9)), "cache_sequences append compress cmp select sel window combine");
  // Eight new tokens would complete two compressed blocks.
  Spec near = specOf();
  near.cmpStride = 4;
  EXPECT_EQ(launchesOf(near, tokens(4)), "decode_step");
  EXPECT_EQ(launchesOf(near, tokens(8)), splits);
  near.branches = kBranchWin;
  EXPECT_EQ(launchesOf(near, tokens(8)), "decode_step");
  Maxima none = token(8, 65536);
  none.seqlenQ = none.tokensQ = 0; // of one bucket with one token, so of one plan
  EXPECT_EQ(launchesOf(specOf(), none), "decode_step");
  Spec forward = specOf();
  forward.op = Operator::kNsa;
  EXPECT_EQ(launchesOf(forward, token(8, 65536)), "compress cmp select sel window combine");
  // Names a way of a plan, and no template of other kernels.
  EngineOptions options;
  options.forceVariant = kStepVariant;
  EXPECT_EQ(options.forcedTemplate(), "");
}

// A stored number of splits and the option decode_splits are of the other kernels.
TEST(DecodeStep, HasNoSplits) {
  RouteRules rules = kForced;
  rules.decodeSplits = 3;
  const FindRoute find = [](const std::string &, const std::string &name) -> std::optional<StoredRoute> {
    ADD_FAILURE() << name;
    return std::nullopt;
  };
  const Routing routing = routingOf(specOf(), token(8, 65536), rules, find);
  EXPECT_EQ(routing.spec.keySplits, 0);
  const RouteDescription route = describeRoute(routing, routing.steps().front());
  EXPECT_EQ(route.part, "step");
  EXPECT_EQ(route.name, kStepVariant);
  EXPECT_EQ(route.source, "force_variant");
  EXPECT_EQ(route.splitsSource, "");
}

// A measured threshold chooses where the kernel serves, and options come before it.
TEST(DecodeStep, IsTakenWhereItWasMeasuredToBeFaster) {
  const Maxima maxima = token(8, 65536);
  std::string asked;
  int64_t threshold = kTakesStep;
  std::vector<RouteMeasurement> evidence;
  const FindRoute find = [&](const std::string &family, const std::string &name) -> std::optional<StoredRoute> {
    asked = name;
    StoredRoute route;
    route.family = family;
    route.name = name;
    route.threshold = threshold;
    route.evidence = evidence;
    return route;
  };
  const auto kernels = [&](const Spec &spec, const Maxima &at, RouteRules rules, bool mayStep = true) {
    rules.mayStep = mayStep;
    const Routing routing = routingOf(spec, at, rules, find);
    EXPECT_EQ(routing.mayAvoidStep(), routing.steps().back().role == Role::kStep);
    return routing.steps().size();
  };
  EXPECT_EQ(kernels(specOf(), maxima, {}), 1u);
  EXPECT_EQ(asked, "decode.splits batch=8 seqlen_k=65536 seqlen_q=1");
  const Routing routing = routingOf(specOf(), maxima, {.mayStep = true}, find);
  EXPECT_TRUE(routing.spec.decodeStep);
  const RouteDescription route = describeRoute(routing, routing.steps().front());
  EXPECT_EQ(route.name, kStepVariant);
  EXPECT_EQ(route.source, "decode.splits");
  EXPECT_EQ(kernels(specOf(), maxima, {}, false), 10u);
  EXPECT_EQ(routingOf(specOf(), maxima, {}, find).splits, std::nullopt) << "it says nothing of the other kernels";
  EXPECT_EQ(kernels(specOf(), maxima, {.decodeSplits = 3}), 10u);
  EXPECT_EQ(routingOf(specOf(), maxima, {.decodeSplits = 3}, find).spec.keySplits, 3);
  // Eight new tokens would complete two compressed blocks.
  Spec near = specOf();
  near.cmpStride = 4;
  EXPECT_EQ(kernels(near, {.batch = 8, .tokensQ = 64, .seqlenQ = 8, .seqlenK = 65536}, {}), 10u);
  EXPECT_EQ(kernels(specOf(CmpKind::kMlp), maxima, {}), 1u);
  EXPECT_NE(splitsFamily(specOf()), splitsFamily(specOf(CmpKind::kMlp)));
  // What a spec says of a plan before it has a routing does not count.
  Spec said = specOf();
  said.decodeStep = true;
  EXPECT_EQ(kernels(said, maxima, {.decodeSplits = 3}), 10u);

  // What was measured without the kernel says nothing of it.
  for (const int64_t other : {StoredRoute::kNever, int64_t{4}}) {
    threshold = other;
    evidence = {{0, "rule 1/1/1", 1.0, 1.0, ""}, {4, "shares", 0.9, 0.9, ""}};
    EXPECT_EQ(kernels(specOf(), maxima, {}), 1u);
    const Routing usual = routingOf(specOf(), maxima, {.mayStep = true}, find);
    EXPECT_EQ(describeRoute(usual, usual.steps().front()).source, "rule");
    EXPECT_EQ(routingOf(specOf(), maxima, {}, find).spec.keySplits, std::max<int64_t>(other, 0));
    evidence.push_back({kTakesStep, std::string(kStepVariant), 1.2, 1.2, ""});
    EXPECT_EQ(kernels(specOf(), maxima, {}), 10u);
    EXPECT_EQ(routingOf(specOf(), maxima, {.mayStep = true}, find).spec.keySplits, std::max<int64_t>(other, 0));
  }
}

TEST(DecodeStep, IsCompiledForWhatItsKernelNeeds) {
  Spec spec = specOf(CmpKind::kMlp);
  spec.pageSize = 256;
  spec.branches = kBranchCmp | kBranchSel;
  const Step step = stepOf(spec, token(5, 60000));
  ASSERT_TRUE(step.spec.validate().isOk()) << step.spec.validate().toString();
  EXPECT_EQ(Problem::make(step.spec, step.maxima).key(),
            "decode_step branches=3 cmp_block=32 cmp_kind=mlp cmp_stride=16 dtype=bf16 gate=value gate_per_group=0 "
            "group=16 mlp_activation=relu mlp_hidden=64 page_size=256 pairs=32 qk_dim=128 room=65536 sel_block=64 "
            "sel_count=16 v_dim=128 | batch=8 kv_heads=4 seqlen_k=65536 seqlen_q=1 window=65536");
  // Where nothing is compressed, one kernel serves whatever the compression is.
  spec.branches = kBranchWin;
  EXPECT_EQ(Problem::make(step.spec, {.batch = 5, .tokensQ = 15, .seqlenQ = 3, .seqlenK = 60000}).fixed().at("pairs"),
            "128");
  const Step window = stepOf(spec, token(5, 60000));
  EXPECT_EQ(window.spec.cmpKind, CmpKind::kMean);
  EXPECT_EQ(window.spec.cmpBlock, 1);
  EXPECT_EQ(Problem::make(stepOf(specOf(), token(4096, 4096)).spec, token(4096, 4096)).fixed().at("pairs"), "1024");
  // The next power of two is no number of 32 bits.
  const Maxima longest = token(1, 2'000'000'000);
  EXPECT_EQ(Problem::make(stepOf(spec, longest).spec, longest).fixed().at("room"), "2147483647");
}

// Plans have equal keys exactly where their kernels have.
TEST(DecodeStep, PlansOfOneKeyHaveTheSameKernels) {
  std::map<std::string, PlanKey> keys;
  std::map<std::string, std::string> others; // the kernels in the place of decode_step
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp})
    for (int32_t branches = 1; branches <= kAllBranches; ++branches)
      for (const int32_t block : {32, 64})
        for (const int32_t selCount : {8, 16})
          for (const int32_t window : {512, 1024, 1 << 20})
            for (const int64_t keysOfAll : {60000, 65536, 1000})
              for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
                Spec spec = specOf(kind);
                spec.branches = branches;
                spec.cmpBlock = block;
                spec.mlpHidden = block * 2;
                spec.mlpActivation = selCount == 8 ? Activation::kRelu : Activation::kSilu;
                spec.selCount = selCount;
                spec.window = window;
                spec.layout = layout;
                spec.decodeStep = true;
                const Maxima maxima = token(3, keysOfAll);
                std::string text;
                for (const Step &step : stepsOf(spec, maxima))
                  text += Problem::make(step.spec, step.maxima).key() + ";";
                const PlanKey key = PlanKey::make(spec, maxima);
                const auto [found, isNew] = keys.emplace(text, key);
                EXPECT_EQ(found->second, key) << text;
                // A plan with this key may have the other kernels, too: a threshold decides.
                spec.decodeStep = false;
                std::string other;
                for (const Step &step : stepsOf(spec, maxima))
                  other += Problem::make(step.spec, step.maxima).key() + ";";
                EXPECT_EQ(others.emplace(text, other).first->second, other) << text;
              }
  for (auto one = keys.begin(); one != keys.end(); ++one)
    for (auto other = std::next(one); other != keys.end(); ++other)
      ASSERT_FALSE(one->second == other->second) << one->first << "\n" << other->first;
  // The way is part of the key.
  Spec spec = specOf();
  const PlanKey usual = PlanKey::make(spec, token(1, 4096));
  spec.decodeStep = true;
  EXPECT_FALSE(PlanKey::make(spec, token(1, 4096)) == usual);
}

TEST(DecodeStep, TheWorkspaceHoldsMarks) {
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
    const Spec spec = routingOf(specOf(kind), token(5, 65536), kForced).spec;
    const WorkspaceLayout layout(spec, token(5, 65536), 0, true);
    EXPECT_EQ(layout.bytes, size_t{8 * 8 * 5 * 4});
    EXPECT_FALSE(layout.has(Buffer::kTable));
    // A mark of each of eight new tokens of a sequence and a head has 8 bytes.
    EXPECT_EQ(layout[Buffer::kArrivals].columns, 16);
    EXPECT_EQ(layout[Buffer::kArrivals].row, 64);
    EXPECT_EQ(layout[Buffer::kArrivals].offset % 8, 0u);
  }
}

} // namespace
} // namespace nsa
