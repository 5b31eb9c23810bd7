// Decode against the reference of the forward over the same history: fed in one piece, in pieces of any size, or token
// by token, contiguous or in pages, every row, list and count must be what the forward has there. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/operator_case.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tools/support/decode_run.h"
#include "tools/support/operator_check.h"

#include <numeric>

namespace nsa::test {
namespace {

using T = TensorName;
using tools::CacheShape;
using tools::DecodeRun;
using tools::NamedTensors;
using tools::OperatorInputs;

Spec smallSpec(DType dtype) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = dtype;
  spec.queryHeads = 4;
  spec.kvHeads = 2;
  spec.qkDim = 32;
  spec.vDim = 16;
  spec.window = 20;
  spec.cmpBlock = 16;
  spec.cmpStride = 8;
  spec.selBlock = 16;
  spec.selCount = 4;
  return spec;
}

class HostTensorLists {
public:
  HostTensorLists(const tools::HostTensor &tensor, int64_t slots)
      : values(reinterpret_cast<const int32_t *>(tensor.bytes.data()),
               reinterpret_cast<const int32_t *>(tensor.bytes.data()) + tensor.elements()),
        slots(slots) {}
  int64_t count() const { return static_cast<int64_t>(values.size()) / slots; }
  int64_t differences(const HostTensorLists &other) const {
    int64_t found = 0;
    for (size_t first = 0; first < values.size(); first += static_cast<size_t>(slots))
      found += !std::equal(values.begin() + static_cast<std::ptrdiff_t>(first),
                           values.begin() + static_cast<std::ptrdiff_t>(first) + slots,
                           other.values.begin() + static_cast<std::ptrdiff_t>(first));
    return found;
  }

private:
  std::vector<int32_t> values;
  int64_t slots;
};

class DecodeTest : public AttentionTest {
protected:
  // Feeds the whole history in steps that `next` gives, a count for each sequence, and checks all that came out.
  template <typename Next> void decode(const OperatorInputs &history, const CacheShape &shape, Next next) {
    Result<DecodeRun> run =
        DecodeRun::open(session->accelerator(), history, shape, tools::allOutputs(Operator::kDecode));
    ASSERT_TRUE(run.isOk()) << run.status().toString();
    Result<tools::PlanHandle> plan =
        tools::createPlan(session->engine(), run->spec(), run->maxima(), session->accelerator().stream());
    ASSERT_TRUE(plan.isOk()) << plan.status().toString();
    const nlohmann::json description = tools::describePlan(plan->get());
    SCOPED_TRACE(description.dump(2));
    EXPECT_TRUE(description["fallbacks"].empty());
    for (const nlohmann::json &launch : description["launches"])
      EXPECT_EQ(launch.value("target", "") == "cpu", !session->isCuda());
    ASSERT_TRUE(run->allocateWorkspace(plan->get()).isOk());
    for (std::vector<int64_t> counts = next(*run); std::reduce(counts.begin(), counts.end()) > 0; counts = next(*run)) {
      const Status status = run->step(plan->get(), counts);
      ASSERT_TRUE(status.isOk()) << status.toString();
    }
    Result<NamedTensors> outputs = run->collected();
    ASSERT_TRUE(outputs.isOk()) << outputs.status().toString();
    const tools::OperatorCheck checked = tools::checkOperator(history, *outputs);
    EXPECT_TRUE(checked.within()) << checked.toString();
    collected = std::move(*outputs);
  }

  // As many tokens of each sequence, at most `most` at a time, until all are in.
  static auto evenly(int64_t tokens, int64_t most) {
    return [=](const DecodeRun &run) {
      const int64_t count = std::min(most, tokens - run.length(0));
      return std::vector(static_cast<size_t>(run.maxima().batch), count);
    };
  }

  NamedTensors collected;
};

class DecodeTypes : public DecodeTest, public ::testing::WithParamInterface<std::tuple<DType, bool, bool>> {};

TEST_P(DecodeTypes, TokenByTokenIsTheForward) {
  const auto &[dtype, isPaged, isPacked] = GetParam();
  const OperatorInputs history = tools::drawInputs(smallSpec(dtype), {{150, 150}, {150, 150}}, freshSeed());
  decode(history,
         {.room = 160, .pageSize = isPaged ? 32 : 0, .layout = isPacked ? Layout::kPacked : Layout::kDense, .seed = 7},
         evenly(150, 1));
}

INSTANTIATE_TEST_SUITE_P(All, DecodeTypes,
                         ::testing::Combine(::testing::Values(DType::kBf16, DType::kF16, DType::kF32),
                                            ::testing::Bool(), ::testing::Bool()),
                         [](const auto &info) {
                           return std::string(dtypeName(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_paged" : "_contiguous") +
                                  (std::get<2>(info.param) ? "_packed" : "_dense");
                         });

TEST_F(DecodeTest, APromptInOnePieceIsTheForward) {
  const OperatorInputs history = tools::drawInputs(smallSpec(DType::kBf16), {{333}, {333}}, freshSeed());
  decode(history, {.room = 333, .mostNew = 333}, evenly(333, 333));
}

TEST_F(DecodeTest, APromptInChunksAndThenTokensAreTheForward) {
  // Chunks of any size, as no multiple of a block: what is compressed goes on where it stood.
  const OperatorInputs history = tools::drawInputs(smallSpec(DType::kF16), {{300, 300}, {300, 300}}, freshSeed());
  std::mt19937_64 random(freshSeed());
  for (const int32_t page : {0, 48})
    decode(history, {.room = 320, .mostNew = 100, .pageSize = page, .seed = random()}, [&](const DecodeRun &run) {
      const int64_t most = run.length(0) < 200 ? 100 : 8;
      const auto count = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(most));
      return std::vector<int64_t>(2, std::min(count, 300 - run.length(0)));
    });
}

TEST_F(DecodeTest, UnequalSequencesGrowEachByItsOwn) {
  Spec spec = smallSpec(DType::kBf16);
  spec.layout = Layout::kPacked;
  const std::vector<int64_t> lengths = {70, 7, 211, 1, 128};
  const OperatorInputs history = tools::drawInputs(spec, {lengths, lengths}, freshSeed());
  std::mt19937_64 random(freshSeed());
  for (const int32_t page : {0, 16})
    decode(history, {.room = 224, .mostNew = 30, .pageSize = page, .layout = Layout::kPacked, .seed = random()},
           [&](const DecodeRun &run) {
             std::vector<int64_t> counts;
             for (size_t s = 0; s < lengths.size(); ++s) // a chunk, some tokens, or none
               counts.push_back(std::min(lengths[s] - run.length(s),
                                         static_cast<int64_t>(random() % 4 ? random() % 3 : random() % 31)));
             if (std::reduce(counts.begin(), counts.end()) == 0)
               for (size_t s = 0; s < lengths.size(); ++s)
                 counts[s] = std::min<int64_t>(1, lengths[s] - run.length(s));
             return counts;
           });
}

TEST_F(DecodeTest, EveryKindOfCompressionGoesOn) {
  for (const CmpKind kind : {CmpKind::kLinear, CmpKind::kMlp}) {
    Spec spec = smallSpec(DType::kBf16);
    spec.cmpKind = kind;
    spec.mlpHidden = 24;
    const OperatorInputs history = tools::drawInputs(spec, {{90, 90}, {90, 90}}, freshSeed());
    decode(history, {.room = 96, .mostNew = 5}, evenly(90, 5));
  }
}

TEST_F(DecodeTest, OneCacheServesBothBranches) {
  const OperatorInputs history = tools::drawInputs(smallSpec(DType::kBf16), {{120}, {120}}, freshSeed());
  OperatorInputs shared = history;
  for (const auto &[sel, win, both] : {std::array{T::kKSel, T::kKWin, T::kK}, std::array{T::kVSel, T::kVWin, T::kV}}) {
    auto node = shared.tensors.extract(sel);
    node.key() = both;
    shared.tensors.insert(std::move(node));
    shared.tensors.erase(win);
  }
  decode(shared, {.room = 128, .mostNew = 3, .pageSize = 64, .isShared = true}, evenly(120, 3));
}

TEST_F(DecodeTest, BranchesThatAreOffNeedNoCache) {
  for (int32_t branches = 1; branches < kAllBranches; ++branches) {
    Spec spec = smallSpec(DType::kF32);
    spec.branches = branches;
    SCOPED_TRACE(branches);
    const OperatorInputs history = tools::drawInputs(spec, {{100}, {100}}, freshSeed());
    decode(history, {.room = 112, .mostNew = 7, .pageSize = branches % 2 ? 16 : 0}, evenly(100, 7));
  }
}

// So many blocks that the first of each segment are found before the first of all: of two whole ones and a beginning.
TEST_F(DecodeTest, ManyBlocksAreRankedInSegments) {
  Spec spec = smallSpec(DType::kBf16);
  spec.cmpBlock = 4;
  spec.cmpStride = 2;
  spec.selBlock = 4;
  spec.selCount = 20;
  constexpr int64_t kTokens = 2300, kNew = 8;
  const OperatorInputs history = tools::drawInputs(spec, {{kTokens, kTokens}, {kTokens, kTokens}}, freshSeed());
  spec.op = Operator::kDecode;
  ASSERT_EQ(rankSegment(spec, {2, 2 * kNew, kNew, kTokens}), 256);
  decode(history, {.room = kTokens, .mostNew = kNew}, evenly(kTokens, kNew));
}

// The lists of the forward pass over the same history, by another set of kernels.
TEST_F(DecodeTest, TwoThousandPositionsFromTheFirstAreThoseOfPrefill) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 4;
  spec.kvHeads = 2;
  spec.qkDim = 48;
  spec.vDim = 32;
  constexpr int64_t kTokens = 2000;
  const OperatorInputs history = tools::drawInputs(spec, {{kTokens}, {kTokens}}, freshSeed());
  Result<tools::PlanHandle> plan =
      tools::createPlan(session->engine(), spec, history.maxima, session->accelerator().stream());
  ASSERT_TRUE(plan.isOk()) << plan.status().toString();
  Result<tools::RunResult> prefill = tools::runOnce(session->accelerator(), plan->get(), history, {T::kBlockList});
  ASSERT_TRUE(prefill.isOk()) << prefill.status().toString();
  const HostTensorLists expected(prefill->outputs.at(T::kBlockList), spec.selCount);
  for (const int32_t page : {0, 128}) {
    decode(history, {.room = kTokens, .pageSize = page, .seed = freshSeed()}, evenly(kTokens, 1));
    if (HasFailure())
      return;
    // `decode` has found every list right, so those that differ are ties.
    const HostTensorLists lists(collected.at(T::kBlockList), spec.selCount);
    const int64_t ties = lists.differences(expected);
    std::printf("%s: %lld of %lld lists differ from prefill's, all by ties\n", page ? "paged" : "contiguous",
                static_cast<long long>(ties), static_cast<long long>(lists.count()));
    EXPECT_LE(ties, std::max<int64_t>(1, lists.count() / 10000)); // spec.md 5
  }
}

// spec.md 10: the seed's bench after its 64 steps.
TEST_F(DecodeTest, ReadsAreTheGoldenOnes) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 32;
  const std::pair<int64_t, int32_t> golden[] = {{576, 1123}, {1088, 1603}, {2112, 1667}, {4160, 1795}};
  for (const auto &[tokens, reads] : golden) {
    const OperatorInputs history = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
    Result<DecodeRun> run =
        DecodeRun::open(session->accelerator(), history, {.room = tokens, .mostNew = tokens - 64}, {T::kReads});
    ASSERT_TRUE(run.isOk()) << run.status().toString();
    Result<tools::PlanHandle> plan =
        tools::createPlan(session->engine(), run->spec(), run->maxima(), session->accelerator().stream());
    ASSERT_TRUE(plan.isOk()) << plan.status().toString();
    ASSERT_TRUE(run->allocateWorkspace(plan->get()).isOk());
    ASSERT_TRUE(run->step(plan->get(), {tokens - 64}).isOk());
    for (int i = 0; i < 64; ++i)
      ASSERT_TRUE(run->step(plan->get(), {1}).isOk());
    const NamedTensors outputs = std::move(*run->collected());
    const auto *counted = reinterpret_cast<const int32_t *>(outputs.at(T::kReads).bytes.data());
    for (int64_t head = 0; head < 2; ++head)
      EXPECT_EQ(counted[(tokens - 1) * 2 + head], reads) << "at " << tokens;
  }
}

} // namespace
} // namespace nsa::test
