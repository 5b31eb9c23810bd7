// The hand-scheduled attention of sm_90a on its device: that it is what serves, the same bits again and again, and
// tensors that the copy engine cannot address.
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <cstdio>
#include <cstring>

namespace nsa::test {
namespace {

using T = TensorName;

constexpr Operator kOperators[] = {Operator::kDense, Operator::kWindow, Operator::kCmp};

// 16 heads of 4 sequences of more than 128 queries are the least that counts as many.
Spec specOf(Operator op, int32_t qkDim = 64) {
  Spec spec;
  spec.op = op;
  spec.dtype = DType::kBf16;
  spec.queryHeads = 16;
  spec.kvHeads = 2;
  spec.qkDim = qkDim;
  spec.vDim = 64;
  spec.window = 60;
  spec.cmpBlock = 4;
  spec.cmpStride = 2;
  spec.selBlock = 16;
  spec.selCount = 4;
  return spec;
}
const tools::SequenceLengths kLengths = {{150, 150, 150, 150}, {150, 150, 150, 150}};

// How many of a plan's attention kernels are the template's; any other fails the test.
int attentionsByHand(const nlohmann::json &description) {
  int attentions = 0;
  for (const nlohmann::json &launch : description["launches"]) {
    const std::string op = launch.value("operator", "");
    if (op != "dense" && op != "window" && op != "cmp")
      continue;
    ++attentions;
    EXPECT_EQ(launch.value("template", ""), kHopperTemplate) << description.dump(2);
  }
  EXPECT_GT(attentions, 0) << description.dump(2);
  return attentions;
}

class HopperAttention : public OperatorTest {
protected:
  // Without anything forced or stored.
  static Result<tools::EngineHandle> freeEngine(tools::EngineSettings settings = {}) {
    settings.device = kTestDevice;
    return tools::createEngine(tools::withNothingStored(settings));
  }

  NamedTensors finish(tools::DeviceOperator &job, nsa_plan *plan) {
    const Status enqueued = job.enqueue(plan);
    EXPECT_TRUE(enqueued.isOk()) << enqueued.toString();
    const Status status = tools::toStatus(nsa_plan_status(plan, session->accelerator().stream(), nullptr));
    EXPECT_TRUE(status.isOk()) << status.toString();
    Result<NamedTensors> outputs = job.download();
    EXPECT_TRUE(outputs) << outputs.status().toString();
    return outputs ? std::move(*outputs) : NamedTensors();
  }

  // Runs with one operand in other memory: `bytes` on the device, its first element `begin` elements behind.
  void checkWith(const OperatorInputs &inputs, T moved, const std::vector<std::byte> &bytes, int64_t begin,
                 const std::vector<int64_t> &strides) {
    SCOPED_TRACE(std::string(operatorName(inputs.spec.op)) + ": " + std::string(tensorName(moved)));
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    Result<tools::DeviceOperator> job =
        tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(inputs.spec.op));
    ASSERT_TRUE(job && job->allocateWorkspace(made.get()).isOk());
    Result<tools::Buffer> memory = session->accelerator().allocate(bytes.size());
    ASSERT_TRUE(memory && session->accelerator().upload(memory->data(), bytes.data(), bytes.size()).isOk());
    job->rebind(moved, static_cast<std::byte *>(memory->data()) + begin * dtypeBytes(inputs.spec.dtype), strides);
    checkOutputs(inputs, finish(*job, made.get()));
  }
};

// Queries, keys and values.
std::vector<T> operandsIn(const OperatorInputs &inputs) {
  std::vector<T> names;
  for (const auto &[name, tensor] : inputs.tensors)
    if (tensor.dtype == inputs.spec.dtype)
      names.push_back(name);
  EXPECT_EQ(names.size(), 3u);
  return names;
}

// Of a contiguous tensor.
std::vector<int64_t> stridesOf(const tools::HostTensor &tensor) {
  const nsa_tensor described = tools::contiguousTensor(nullptr, tensor.dtype, tensor.shape);
  return {described.strides, described.strides + described.rank};
}

TEST_F(HopperAttention, IsWhatTheLibraryChooses) {
  const Result<tools::EngineHandle> engine = freeEngine();
  ASSERT_TRUE(engine) << engine.status().toString();
  for (const Operator op : kOperators) {
    const OperatorInputs inputs = tools::drawInputs(specOf(op, 128), kLengths, freshSeed());
    const Result<tools::PlanHandle> made =
        tools::createPlan(engine->get(), inputs.spec, inputs.maxima, session->accelerator().stream());
    ASSERT_TRUE(made) << made.status().toString();
    attentionsByHand(tools::describePlan(made->get()));
    const Result<tools::RunResult> ran =
        tools::runOnce(session->accelerator(), made->get(), inputs, tools::allOutputs(op));
    ASSERT_TRUE(ran) << ran.status().toString();
    checkOutputs(inputs, ran->outputs);
  }
}

class HopperTuning : public HopperAttention, public ::testing::WithParamInterface<Operator> {};
INSTANTIATE_TEST_SUITE_P(Operators, HopperTuning, ::testing::ValuesIn(kOperators),
                         [](const auto &info) { return std::string(operatorName(info.param)); });

// Also blocks that share their keys, which the library never chooses untuned: the tuner compares each candidate with
// the tile program. Uneven sequences end within the rows of a first block, so the second one has none there.
TEST_P(HopperTuning, NothingThatTheTunerMayChooseIsWrong) {
  tools::EngineSettings settings;
  settings.tuneBudgetSeconds = 120; // half of it for compiling, cheapest first
  const Result<tools::EngineHandle> engine = freeEngine(std::move(settings));
  ASSERT_TRUE(engine) << engine.status().toString();
  Spec spec = specOf(GetParam(), 128);
  spec.vDim = 128; // two chunks of columns, whose distance stands in the descriptor of values
  spec.layout = Layout::kPacked;
  const Result<nlohmann::json> report =
      tools::tune(engine->get(), spec, {.batch = 4, .tokensQ = 2400, .seqlenQ = 900, .seqlenK = 900});
  ASSERT_TRUE(report) << report.status().toString();
  int alone = 0, sharing = 0;
  ASSERT_TRUE(report->contains("candidates")) << report->dump(2);
  for (const nlohmann::json &candidate : (*report)["candidates"]) {
    const std::string outcome = candidate.value("outcome", "");
    EXPECT_TRUE(outcome != "rejected" && outcome != "failed") << candidate;
    if (candidate.value("template", "") != kHopperTemplate || (outcome != "measured" && outcome != "winner"))
      continue;
    ++(candidate.value("config", "").starts_with("cluster=2 ") ? sharing : alone);
  }
  EXPECT_GT(alone, 0) << report->dump(2);
  EXPECT_GT(sharing, 0) << report->dump(2);
}

TEST_F(HopperAttention, AHundredRepeatsGiveTheSameBits) {
  for (const Operator op : kOperators) {
    SCOPED_TRACE(operatorName(op));
    // Several items for each block that stays, and tiles that end anywhere.
    Spec spec = specOf(op, 128);
    spec.vDim = 128;
    const OperatorInputs inputs = tools::drawInputs(spec, {{1900, 1900}, {1900, 1900}}, freshSeed());
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    Result<tools::DeviceOperator> job =
        tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(op));
    ASSERT_TRUE(job && job->allocateWorkspace(made.get()).isOk());
    const NamedTensors first = finish(*job, made.get());
    checkOutputs(inputs, first, {0, 1, 127, 128, 899, 1899});
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(first.contains(T::kOut) && first.contains(T::kLse));
    for (int repeat = 1; repeat < 100; ++repeat) {
      ASSERT_TRUE(job->poisonOutputs().isOk());
      const NamedTensors again = finish(*job, made.get());
      for (const auto &[name, tensor] : first)
        ASSERT_EQ(again.at(name).bytes, tensor.bytes) << tensorName(name) << ", repeat " << repeat;
    }
  }
}

// Weights are taken against each tile's own maximum, and no further below the row's than `kReach`: scores that fall and
// rise by hundreds from one tile to the next, whichever way the tiles are taken.
TEST_F(HopperAttention, TilesFarApart) {
  constexpr int64_t kStretch = 190; // more than any tile has, and of the compressed keys there are three and more
  constexpr double kLevels[] = {40, -40, 0, 60};
  for (const Operator op : kOperators) {
    SCOPED_TRACE(operatorName(op));
    Spec spec = specOf(op);
    spec.window = 800;
    OperatorInputs inputs = tools::drawInputs(spec, {{1400}, {1400}}, freshSeed());
    tools::HostTensor &k = inputs.tensors.at(op == Operator::kCmp ? T::kKComp : T::kKWin);
    fill(spec.dtype, inputs.tensors.at(inputs.tensors.contains(T::kQCmp) ? T::kQCmp : T::kQ).bytes, 1);
    // All but 8 elements of a key: with the scale of 1/8, seven times the level is added to its scores.
    for (int64_t time = 0; time < k.shape[1]; ++time)
      for (int64_t head = 0; head < k.shape[2]; ++head)
        fill(spec.dtype, headOf(spec, k, 0, time, head).subspan(16), kLevels[time / kStretch % 4]);
    ASSERT_GT(k.shape[1], 3 * kStretch);
    checkOutputs(inputs, run(plan(inputs.spec, inputs.maxima), inputs));
  }
}

// Rows of many keys: where a row's keys fit into one tile, the tile's width decides.
TEST_F(HopperAttention, ErrorIsNoWorseThanTheTileProgram) {
  for (const auto &[op, tokens] :
       {std::pair{Operator::kDense, 4096}, {Operator::kWindow, 4096}, {Operator::kCmp, 16384}}) {
    SCOPED_TRACE(operatorName(op));
    Spec spec;
    spec.op = op;
    spec.dtype = DType::kBf16;
    spec.queryHeads = 16;
    spec.kvHeads = 1;
    spec.qkDim = spec.vDim = 128;
    const OperatorInputs inputs = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
    std::vector<int64_t> rows;
    for (int64_t row = tokens / 2; row < tokens; row += tokens / 128)
      rows.push_back(row);
    const auto errorOf = [&](const NamedTensors &outputs) {
      for (const tools::OutputCheck &output : tools::checkOperator(inputs, outputs, rows).outputs)
        if (output.name == tensorName(T::kOut) && output.error)
          return output.error->relativeRms;
      ADD_FAILURE() << "no output was compared";
      return 0.0;
    };
    const double byHand = errorOf(run(plan(inputs.spec, inputs.maxima), inputs));
    useVariant(kTileTemplate);
    const double tileProgram = errorOf(run(inputs));
    useVariant(kHopperTemplate);
    std::printf("%s, %d tokens: relative error %.4g by hand, %.4g by the tile program\n",
                std::string(operatorName(op)).c_str(), tokens, byHand, tileProgram);
    EXPECT_GT(byHand, 0);
    EXPECT_LE(byHand, tileProgram);
  }
}

// Rows that begin at no multiple of 16 bytes have no tensor map: a warp copies them.
TEST_F(HopperAttention, RowsThatAreNotAlignedAreCopied) {
  for (const Operator op : kOperators) {
    const OperatorInputs inputs = tools::drawInputs(specOf(op), kLengths, freshSeed());
    for (const T name : operandsIn(inputs)) {
      const tools::HostTensor &tensor = inputs[name];
      // One element further.
      std::vector<std::byte> shifted(tensor.bytes.size() + 16, std::byte{0xff});
      std::memcpy(shifted.data() + dtypeBytes(tensor.dtype), tensor.bytes.data(), tensor.bytes.size());
      checkWith(inputs, name, shifted, 1, stridesOf(tensor));
      ASSERT_FALSE(HasFailure());
    }
    // All of them at odd places, with gaps between rows, heads and sequences; then with gaps that a map can skip.
    checkOutputs(inputs, run(plan(inputs.spec, inputs.maxima), inputs, {.base = 5, .gap = 3}));
    checkOutputs(inputs, run(plan(inputs.spec, inputs.maxima), inputs, {.gap = 8, .headMajor = true}));
    ASSERT_FALSE(HasFailure());
  }
}

// As torch's expand makes them: sequences, or heads, that are one and the same memory.
TEST_F(HopperAttention, SequencesAndHeadsInOneMemoryAreCopied) {
  for (const Operator op : kOperators) {
    const OperatorInputs drawn = tools::drawInputs(specOf(op), kLengths, freshSeed());
    for (const T name : operandsIn(drawn)) {
      OperatorInputs sequences = drawn;
      tools::HostTensor &same = sequences.tensors.at(name);
      const size_t entry = same.bytes.size() / static_cast<size_t>(same.shape[0]);
      for (size_t begin = entry; begin < same.bytes.size(); begin += entry)
        std::memcpy(same.bytes.data() + begin, same.bytes.data(), entry);
      std::vector<int64_t> strides = stridesOf(same);
      strides[0] = 0;
      checkWith(sequences, name, {same.bytes.begin(), same.bytes.begin() + static_cast<std::ptrdiff_t>(entry)}, 0,
                strides);
      ASSERT_FALSE(HasFailure());
    }

    OperatorInputs heads = drawn;
    const T name = op == Operator::kCmp ? T::kKComp : T::kKWin;
    tools::HostTensor &same = heads.tensors.at(name);
    for (int64_t batch = 0; batch < same.shape[0]; ++batch)
      for (int64_t time = 0; time < same.shape[1]; ++time)
        for (int64_t head = 1; head < same.shape[2]; ++head) {
          const std::span<std::byte> from = headOf(heads.spec, same, batch, time, 0);
          std::memcpy(headOf(heads.spec, same, batch, time, head).data(), from.data(), from.size());
        }
    std::vector<int64_t> strides = stridesOf(same);
    strides[2] = 0;
    checkWith(heads, name, same.bytes, 0, strides);
    ASSERT_FALSE(HasFailure());
  }
}

class HopperDecode : public DecodeTest {};

// A prompt in two pieces over a cache without pages: keys and values lie as the cache has them.
TEST_F(HopperDecode, APromptIsReadFromAContiguousCache) {
  const OperatorInputs history = tools::drawInputs(specOf(Operator::kNsa, 128), {{1100}, {1100}}, freshSeed());
  decode(history, {.room = 1200, .mostNew = 1024}, evenly(1100, 1024));
  EXPECT_EQ(attentionsByHand(description), 2) << description.dump(2);
}

} // namespace
} // namespace nsa::test
