// Plans of decode with batch_invariant: a sequence has the same bits alone and in a batch, in a small room and in a
// large one, and with whatever number of new tokens its plan allows. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <random>

namespace nsa::test {
namespace {

constexpr int64_t kTokens = 260, kBatch = 4, kManySequences = 256, kRoom = 288;
constexpr size_t kOwn = 2; // the sequence whose bits are compared

struct InvariantShape {
  const char *name;
  int32_t group;
  DType dtype;
  int32_t pageSize = 0;
  CmpKind cmpKind = CmpKind::kMean;
};

Spec specOf(const InvariantShape &shape) {
  Spec spec = smallSpec(shape.dtype);
  spec.queryHeads = shape.group * spec.kvHeads;
  // Enough keys for several splits of each branch.
  spec.cmpBlock = 4;
  spec.cmpStride = 2;
  spec.selCount = 14;
  spec.window = 150;
  spec.cmpKind = shape.cmpKind;
  spec.mlpHidden = 24;
  spec.batchInvariant = true;
  return spec;
}

Spec specOfDecode(const InvariantShape &shape) {
  Spec spec = specOf(shape);
  spec.op = Operator::kDecode;
  spec.pageSize = shape.pageSize;
  return spec;
}

const std::vector<InvariantShape> &invariantShapes() {
  static const std::vector<InvariantShape> shapes = servedCases<InvariantShape>(
      {
          {.name = "1_bf16_contiguous", .group = 1, .dtype = DType::kBf16},
          {.name = "1_bf16_paged", .group = 1, .dtype = DType::kBf16, .pageSize = 32},
          {.name = "1_fp32_contiguous", .group = 1, .dtype = DType::kF32},
          {.name = "1_fp32_paged", .group = 1, .dtype = DType::kF32, .pageSize = 32},
          {.name = "16_bf16_contiguous", .group = 16, .dtype = DType::kBf16},
          {.name = "16_bf16_paged", .group = 16, .dtype = DType::kBf16, .pageSize = 32},
          {.name = "16_fp32_contiguous", .group = 16, .dtype = DType::kF32},
          {.name = "16_fp32_paged", .group = 16, .dtype = DType::kF32, .pageSize = 32},
          {.name = "3_bf16_mlp", .group = 3, .dtype = DType::kBf16, .cmpKind = CmpKind::kMlp},
      },
      specOfDecode);
  return shapes;
}

bool hasSequences(TensorName name) {
  const Lead lead = tensorRule(name).lead;
  return lead == Lead::kQueries || lead == Lead::kKeys || lead == Lead::kBlocks;
}

// The part of a dense tensor that belongs to one sequence.
tools::HostTensor partOf(const tools::HostTensor &tensor, size_t sequence) {
  tools::HostTensor part = tensor;
  part.shape[0] = 1;
  const size_t bytes = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
  const auto first = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(sequence * bytes);
  part.bytes.assign(first, first + static_cast<std::ptrdiff_t>(bytes));
  return part;
}

OperatorInputs alone(const OperatorInputs &history, size_t sequence) {
  OperatorInputs own = history;
  own.extents.batch = 1;
  own.maxima.batch = 1;
  own.maxima.tokensQ = history.maxima.seqlenQ;
  for (auto &[name, tensor] : own.tensors)
    if (hasSequences(name))
      tensor = partOf(tensor, sequence);
  return own;
}

class DecodeInvariant : public DecodeTest, public ::testing::WithParamInterface<InvariantShape> {
protected:
  static void SetUpTestSuite() {
    makeReadyForSuite(invariantShapes(), [](const InvariantShape &shape) {
      return std::pair(specOfDecode(shape), Maxima{.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = kRoom});
    });
  }

  OperatorInputs draw() const {
    const std::vector<int64_t> lengths(kBatch, kTokens);
    return tools::drawInputs(specOf(GetParam()), {lengths, lengths}, freshSeed());
  }

  // The bits of one sequence of the history. `next` says how many tokens the steps feed. The plan is for at least
  // `maxBatch` sequences.
  NamedTensors bitsOf(const OperatorInputs &history, size_t sequence, const CacheShape &wanted, const NextCounts &next,
                      int64_t maxBatch = 1) {
    CacheShape shape = wanted;
    shape.pageSize = GetParam().pageSize;
    NamedTensors bits;
    Result<DecodeRun> run =
        DecodeRun::open(session->accelerator(), history, shape, tools::allOutputs(Operator::kDecode));
    EXPECT_TRUE(run) << run.status().toString();
    Maxima maxima = run->maxima();
    maxima.batch = std::max(maxima.batch, maxBatch);
    maxima.tokensQ = maxima.batch * maxima.seqlenQ;
    Result<tools::PlanHandle> plan =
        tools::createPlan(session->engine(), run->spec(), maxima, session->accelerator().stream());
    EXPECT_TRUE(plan) << plan.status().toString();
    if (!plan)
      return bits;
    description = tools::describePlan(plan->get());
    EXPECT_TRUE(run->allocateWorkspace(plan->get()).isOk());
    while (run->length(sequence) < kTokens) {
      const Status status = run->step(plan->get(), next(*run));
      EXPECT_TRUE(status.isOk()) << status.toString();
      if (!status.isOk())
        return bits;
    }
    Result<NamedTensors> outputs = run->collected();
    EXPECT_TRUE(outputs) << outputs.status().toString();
    for (const auto &[name, tensor] : *outputs)
      bits.emplace(name, partOf(tensor, sequence));
    return bits;
  }

  // One token in each step.
  static std::vector<int64_t> one(const DecodeRun &run) {
    return std::vector<int64_t>(static_cast<size_t>(run.maxima().batch), 1);
  }
  // One token of the own sequence, and any number of tokens of the others.
  static NextCounts amongOthers(std::mt19937_64 &random) {
    return [&random](const DecodeRun &run) {
      std::vector<int64_t> counts(kBatch, 1);
      for (size_t s = 0; s < kBatch; ++s)
        if (s != kOwn)
          counts[s] =
              std::min<int64_t>(kTokens - run.length(s),
                                static_cast<int64_t>(random() % static_cast<uint64_t>(run.maxima().seqlenQ + 1)));
      return counts;
    };
  }

  static std::vector<std::string> kernelsOf(const nlohmann::json &description) {
    std::vector<std::string> kernels;
    for (const nlohmann::json &launch : description["launches"])
      kernels.push_back(launch.value("operator", "") + " " + launch["config"].dump());
    return kernels;
  }
};
INSTANTIATE_TEST_SUITE_P(Heads, DecodeInvariant, ::testing::ValuesIn(invariantShapes()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(DecodeInvariant, ASequenceHasTheSameBitsInEveryPlan) {
  const OperatorInputs history = draw(), own = alone(history, kOwn);
  const NamedTensors expected = bitsOf(own, 0, {.room = kRoom}, one);
  const std::vector<std::string> kernels = kernelsOf(description);
  const auto expectSame = [&](const char *what, const NamedTensors &bits) {
    SCOPED_TRACE(what);
    EXPECT_EQ(kernelsOf(description), kernels);
    ASSERT_EQ(bits.size(), expected.size());
    for (const auto &[name, tensor] : expected)
      EXPECT_EQ(bits.at(name).bytes, tensor.bytes) << tensorName(name);
  };
  EXPECT_TRUE(tools::checkOperator(own, expected).within());
  EXPECT_EQ(kernels.size(), 10u); // also `rank`, and no `decode_step`
  std::mt19937_64 random(freshSeed());
  expectSame("the smallest room", bitsOf(own, 0, {.room = kTokens}, one));
  expectSame("a larger room", bitsOf(own, 0, {.room = 20000}, one));
  expectSame("more new tokens allowed", bitsOf(own, 0, {.room = kRoom, .mostNew = 8}, one));
  expectSame("a whole prompt allowed", bitsOf(own, 0, {.room = kRoom, .mostNew = kTokens}, one));
  expectSame("more sequences allowed", bitsOf(own, 0, {.room = kRoom}, one, kManySequences));
  expectSame("a batch", bitsOf(history, kOwn, {.room = kRoom}, one));
  expectSame("a batch of other steps",
             bitsOf(history, kOwn, {.room = 1000, .mostNew = 8, .layout = Layout::kPacked, .seed = random()},
                    amongOthers(random)));
  expectSame("a batch of prompts",
             bitsOf(history, kOwn, {.room = kRoom, .mostNew = 64, .layout = Layout::kPacked, .seed = random()},
                    amongOthers(random)));
}

// The kernels were not chosen for the sizes of a plan, so a plan that is too large for them is refused, before and
// after a smaller one.
TEST_P(DecodeInvariant, APlanThatIsTooLargeForItsKernelsIsRefused) {
  constexpr int64_t kMost = int64_t{1} << 22;
  const auto planFor = [&](const Maxima &maxima) {
    return tools::createPlan(session->engine(), specOfDecode(GetParam()), maxima, session->accelerator().stream())
        .status();
  };
  for (int i = 0; i < 2; ++i) {
    const Status refused = planFor({.batch = 1, .tokensQ = kMost, .seqlenQ = kMost, .seqlenK = kMost});
    EXPECT_EQ(refused.code(), ErrorCode::kUnsupported) << refused.toString();
    EXPECT_EQ(refused.error().field, "grid.x") << refused.toString();
    const Status served = planFor({.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = kRoom});
    EXPECT_TRUE(served.isOk()) << served.toString();
  }
}

// What the test of equal bits compares does differ between plans that are not batch-invariant. Where decode_step is
// forced, which refuses some of the types, the plans are batch-invariant, and so it is not taken.
TEST_P(DecodeInvariant, WithoutItBitsFollowThePlan) {
  const bool isForced = std::string_view(kTestTemplate) == kStepTemplate;
  OperatorInputs own = alone(draw(), kOwn);
  own.spec.batchInvariant = isForced;
  const NamedTensors few = bitsOf(own, 0, {.room = kRoom}, one);
  const NamedTensors many = bitsOf(own, 0, {.room = kRoom}, one, kManySequences);
  const NamedTensors prompts = bitsOf(own, 0, {.room = kRoom, .mostNew = kTokens}, one);
  // Outputs of 16 bits seldom show it.
  const auto differ = [](const NamedTensors &one, const NamedTensors &other) {
    return std::ranges::any_of(one,
                               [&](const auto &named) { return other.at(named.first).bytes != named.second.bytes; });
  };
  EXPECT_EQ(differ(few, many), !isForced);
  EXPECT_EQ(differ(few, prompts), !isForced);
  EXPECT_TRUE(tools::checkOperator(own, many).within());
}

} // namespace
} // namespace nsa::test
