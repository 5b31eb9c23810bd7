// A step of decode in one launch, on its device: long caches, whose keys a cluster divides; the same bits again and
// again; and what it does not serve.
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

namespace nsa::test {
namespace {

Spec largeSpec(int32_t group, CmpKind kind = CmpKind::kMean) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = DType::kBf16;
  spec.kvHeads = 2;
  spec.queryHeads = 2 * group;
  spec.qkDim = spec.vDim = 128;
  spec.cmpKind = kind;
  spec.mlpHidden = 24;
  return spec;
}

class DecodeStep : public DecodeTest {
protected:
  // The last launch of a plan for few new tokens of each sequence.
  nlohmann::json lastLaunch(const Spec &spec, const Maxima &maxima) {
    Result<tools::PlanHandle> plan =
        tools::createPlan(session->engine(), spec, maxima, session->accelerator().stream());
    EXPECT_TRUE(plan.isOk()) << plan.status().toString();
    return plan ? tools::describePlan(plan->get())["launches"].back() : nlohmann::json();
  }

  // Decodes from an empty cache, up to `most` tokens of each sequence in a step, and compares with the forward pass.
  void checkLongCaches(int64_t most, int32_t group = 16,
                       const std::vector<CmpKind> &kinds = {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
    for (const CmpKind kind : kinds)
      for (const int32_t page : {0, 64}) {
        const OperatorInputs history = tools::drawInputs(largeSpec(group, kind), {{1300}, {1300}}, freshSeed());
        decode(history, {.room = 1344, .mostNew = most, .pageSize = page, .seed = 3}, evenly(1300, most));
        ASSERT_FALSE(HasFailure());
        ASSERT_EQ(description["launches"].size(), 1u) << description.dump(2);
        EXPECT_EQ(description["launches"].back().value("operator", ""), kStepTemplate);
      }
  }
};

TEST_F(DecodeStep, HeadsOf128AreTheForward) { checkLongCaches(1); }

// One of several new tokens may complete a compressed block.
TEST_F(DecodeStep, SeveralTokensAreTheForward) { checkLongCaches(8); }

// A plan of so many tokens that the main team attends the window, in clusters that are large enough for wide warps.
TEST_F(DecodeStep, SeveralTokensOfALongPlanAreTheForward) {
  Spec spec = largeSpec(16);
  spec.kvHeads = 4;
  spec.queryHeads = 64;
  decode(tools::drawInputs(spec, {{1300}, {1300}}, freshSeed()),
         {.room = 65536, .mostNew = 8, .pageSize = 64, .seed = 3}, evenly(1300, 8));
  EXPECT_EQ(description["launches"].back().value("config", "").find("cluster=3 "), 0u) << description.dump(2);
}

// Heads of a group are the columns of products, and not the rows.
TEST_F(DecodeStep, GroupsOfUpToEightHeadsAreTheForward) {
  for (const int32_t group : {1, 8})
    checkLongCaches(1, group, {CmpKind::kMean});
}

// So many sequences that a block serves each of their heads alone. Their selection blocks are more than a list holds.
TEST_F(DecodeStep, BlocksWithoutNeighboursAreTheForward) {
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kMlp}) {
    Spec spec = largeSpec(4, kind);
    spec.cmpBlock = 8;
    spec.cmpStride = 4;
    spec.selBlock = 16;
    spec.selCount = 4;
    const std::vector<int64_t> lengths(64, 100);
    decode(tools::drawInputs(spec, {lengths, lengths}, freshSeed()), {.room = 128, .pageSize = 64, .seed = 3},
           evenly(100, 1));
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(description["launches"].back().value("config", "").find("cluster=1 "), 0u) << description.dump(2);
  }
}

// Clusters run in any order, and the sums of a step in one. The tokens of a sequence have clusters of their own.
TEST_F(DecodeStep, RepeatsGiveTheSameBits) {
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear}) {
    const OperatorInputs history = tools::drawInputs(largeSpec(16, kind), {{1300, 700}, {1300, 700}}, freshSeed());
    const int64_t most = kind == CmpKind::kMean ? 8 : 1;
    const auto feedAll = [&] {
      feed(history, {.room = 1344, .mostNew = most, .pageSize = 64, .layout = Layout::kPacked, .seed = 3},
           [most](const DecodeRun &run) {
             return std::vector<int64_t>{std::min(most, 1300 - run.length(0)), std::min(most, 700 - run.length(1))};
           });
      return collected;
    };
    const NamedTensors first = feedAll();
    ASSERT_FALSE(HasFailure());
    for (int repeat = 0; repeat < 3; ++repeat) {
      const NamedTensors again = feedAll();
      for (const auto &[name, tensor] : first)
        ASSERT_EQ(again.at(name).bytes, tensor.bytes) << tensorName(name) << ", repeat " << repeat;
    }
  }
}

// A name that no kernel of a plan has is ignored. What the kernel refuses is an error.
TEST_F(DecodeStep, ServesFewTokensOfTheTypesOfMatrixUnits) {
  Spec spec = largeSpec(16);
  spec.op = Operator::kDecode;
  EXPECT_EQ(lastLaunch(spec, {.batch = 4, .tokensQ = 4, .seqlenQ = 1, .seqlenK = 8192}).value("operator", ""),
            kStepTemplate);
  EXPECT_EQ(lastLaunch(spec, {.batch = 4, .tokensQ = 32, .seqlenQ = 8, .seqlenK = 8192}).value("operator", ""),
            kStepTemplate);
  EXPECT_EQ(lastLaunch(spec, {.batch = 4, .tokensQ = 36, .seqlenQ = 9, .seqlenK = 8192}).value("operator", ""),
            "combine");
  spec.dtype = DType::kF32;
  const Result<tools::PlanHandle> refused =
      tools::createPlan(session->engine(), spec, {.batch = 4, .tokensQ = 4, .seqlenQ = 1, .seqlenK = 8192},
                        session->accelerator().stream());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), ErrorCode::kUnsupported) << refused.status().toString();
  EXPECT_NE(refused.status().toString().find("dtype_bytes == 2"), std::string::npos) << refused.status().toString();
}

} // namespace
} // namespace nsa::test
