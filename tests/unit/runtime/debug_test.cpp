// The debugging switches with the real compiler on the CPU: gates of the engine's own in the place of the caller's.
#include "tests/unit/runtime/planner_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

namespace nsa {
namespace {

using T = TensorName;

class DebugTest : public test::PlannerFixture {
protected:
  DebugTest() {
    spec = Spec();
    spec.op = Operator::kNsa;
    spec.dtype = DType::kF32;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 16;
    spec.window = 24;
    spec.selBlock = 32;
    spec.selCount = 3;
    spec.gate = Gate::kSoftmax;
    maxima = {1, kTokens, kTokens, kTokens};
    options.log = [this](LogLevel, std::string_view, std::string_view message) { log.emplace_back(message); };
    draw({T::kQ, T::kOut, T::kOCmp, T::kOSel, T::kOWin}, 4, 16);
    draw({T::kK, T::kV}, 2, 16);
    draw({T::kGates}, 4, 3);
  }

  void draw(std::initializer_list<TensorName> names, int64_t heads, int64_t columns) {
    for (const TensorName name : names) {
      std::vector<float> &values = memory[static_cast<size_t>(name)];
      values.resize(static_cast<size_t>(kTokens * heads * columns));
      for (float &value : values)
        value = std::normal_distribution<float>()(random);
      Tensor &tensor = bindings[name];
      tensor.data = values.data();
      tensor.dtype = DType::kF32;
      tensor.rank = 4;
      tensor.shape = {1, kTokens, heads, columns};
      tensor.strides = {kTokens * heads * columns, heads * columns, columns, 1};
    }
  }
  const std::vector<float> &values(TensorName name) const { return memory[static_cast<size_t>(name)]; }

  Status run(Engine &engine) {
    Result<PlanPointer> plan = engine.plan(spec, maxima, nullptr);
    return plan ? run(**plan) : plan.status();
  }
  Status run(const Plan &plan) const {
    std::vector<std::byte> workspace(plan.workspaceBytes() + kWorkspaceAlignment);
    auto *begin = reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(workspace.data()) + kWorkspaceAlignment) /
                                                kWorkspaceAlignment * kWorkspaceAlignment);
    return plan.run(bindings, begin, plan.workspaceBytes(), nullptr);
  }
  // Of one run of a plan that compares: by part.
  std::map<std::string, Json> compared(Engine &engine) {
    Result<PlanPointer> plan = engine.planThatCompares(spec, maxima, nullptr);
    EXPECT_TRUE(plan.isOk()) << plan.status().toString();
    if (!plan)
      return {};
    EXPECT_FALSE((*plan)->comparisonReport().isOk()) << "it has not run";
    const Status status = run(**plan);
    EXPECT_TRUE(status.isOk()) << status.toString();
    Result<std::string> report = (*plan)->comparisonReport();
    EXPECT_TRUE(report.isOk()) << report.status().toString();
    std::map<std::string, Json> parts;
    const Json json = report ? Json::parse(*report) : Json();
    for (const Json &part : json.at("parts"))
      parts[part.at("part")] = part;
    return parts;
  }

  static constexpr int64_t kTokens = 200;
  std::mt19937 random{7};
  std::array<std::vector<float>, kTensorNames> memory;
  Bindings bindings;
  std::vector<std::string> log;
};

TEST_F(DebugTest, AForcedBranchIsTheOutputWhateverTheGates) {
  const struct {
    const char *name;
    TensorName output;
  } rows[] = {{"cmp", T::kOCmp}, {"sel", T::kOSel}, {"win", T::kOWin}};
  for (const auto &row : rows) {
    log.clear();
    options.forceBranch = row.name;
    auto engine = open(MissPolicy::kDefault);
    ASSERT_TRUE(run(*engine).isOk()) << run(*engine).toString();
    EXPECT_EQ(values(T::kOut), values(row.output)) << row.name;
    ASSERT_EQ(log.size(), 1u) << "said once";
    EXPECT_NE(log[0].find(row.name), std::string::npos) << log[0];
    EXPECT_EQ(Json::parse(engine->describe())["gate_override"], "only the branch " + std::string(row.name) + " counts");
  }
  EXPECT_NE(values(T::kOCmp), values(T::kOWin));
}

TEST_F(DebugTest, UniformGatesGiveTheMean) {
  options.uniformGate = 1;
  auto engine = open(MissPolicy::kDefault);
  ASSERT_TRUE(run(*engine).isOk());
  for (size_t i = 0; i < values(T::kOut).size(); ++i)
    ASSERT_NEAR(values(T::kOut)[i], (values(T::kOCmp)[i] + values(T::kOSel)[i] + values(T::kOWin)[i]) / 3, 1e-5f) << i;
}

// Each type has its own factors, and combine alone reads them as well.
TEST_F(DebugTest, CombineTakesThemInEachType) {
  spec.op = Operator::kCombine;
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    spec.dtype = dtype;
    bindings = {};
    draw({T::kOut, T::kOCmp, T::kOSel, T::kOWin}, 4, 16); // any bits will do, but for NaN and infinity
    draw({T::kGates}, 4, 3);
    for (const TensorName name : {T::kOut, T::kOCmp, T::kOSel, T::kOWin, T::kGates}) {
      bindings[name].dtype = dtype;
      if (dtype == DType::kF32)
        continue;
      auto *half = static_cast<uint16_t *>(bindings[name].data);
      for (size_t i = 0; i < values(name).size(); ++i)
        half[i] = static_cast<uint16_t>(0x3c00 + i % 256);
    }
    options.forceBranch = "win";
    ASSERT_TRUE(run(*open(MissPolicy::kDefault)).isOk());
    EXPECT_EQ(memcmp(values(T::kOut).data(), values(T::kOWin).data(),
                     static_cast<size_t>(kTokens * 4 * 16 * dtypeBytes(dtype))),
              0)
        << dtypeName(dtype);
  }
}

TEST_F(DebugTest, ABranchThatIsOffCannotBeForced) {
  options.forceBranch = "sel";
  spec.branches = kBranchCmp | kBranchWin;
  auto engine = open(MissPolicy::kDefault);
  const Status status = engine->plan(spec, maxima, nullptr).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().field, "force_branch");
  EXPECT_EQ(status.error().value, "sel");
  spec.op = Operator::kWindow; // which has no gates
  EXPECT_TRUE(engine->plan(spec, maxima, nullptr).isOk());
}

TEST_F(DebugTest, EveryPartIsComparedWithItsDefinition) {
  options.tuneBudgetSeconds = 0.5; // of each kernel: enough for winners that are not the first
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    spec.layout = layout;
    int32_t offsets[] = {0, 60, kTokens};
    if (layout == Layout::kPacked) {
      maxima.batch = 2;
      for (size_t name = 0; name < kTensorNames; ++name)
        if (Tensor *tensor = const_cast<Tensor *>(bindings.find(static_cast<T>(name)))) {
          tensor->rank = 3;
          std::copy_n(tensor->shape.begin() + 1, 3, tensor->shape.begin());
          std::copy_n(tensor->strides.begin() + 1, 3, tensor->strides.begin());
        }
      Tensor &lengths = bindings[T::kCuSeqlensQ];
      lengths = {};
      lengths.data = offsets;
      lengths.dtype = DType::kI32;
      lengths.rank = 1;
      lengths.shape = {3};
      lengths.strides = {1};
    }
    auto engine = open(MissPolicy::kTune); // winners, which need not be the first configurations
    const std::vector<float> before = values(T::kOut);
    const auto parts = compared(*engine);
    const std::vector<float> with = values(T::kOut);
    EXPECT_NE(before, with);
    ASSERT_TRUE(run(*engine).isOk());
    EXPECT_EQ(values(T::kOut), with) << "comparing changes no result";
    for (const char *name : {"compress", "cmp", "sel", "win", "combine"}) {
      const Json &part = parts.at(name);
      EXPECT_EQ(part["compared"], true) << part;
      EXPECT_LT(part["relative_rms"], 1e-5) << part;
      EXPECT_LE(part["mean_abs"], part["max_abs"]) << part;
      EXPECT_EQ(part["unequal_nan"], 0) << part;
      EXPECT_EQ(part["unequal_inf"], 0) << part;
      EXPECT_GE(part["elements"], 200) << part;
    }
    EXPECT_GE(parts.at("select")["lists"], 2 * kTokens);
    EXPECT_LE(parts.at("select")["different_lists"], 2);
    EXPECT_EQ(parts.count("sequences"), layout == Layout::kPacked ? 1u : 0u);
    if (layout == Layout::kPacked)
      EXPECT_EQ(parts.at("sequences")["compared"], false);
  }
}

TEST_F(DebugTest, AWrongKernelIsFoundInItsPart) {
  options.templateDir = copyTemplates();
  write("too_wide", wrongTemplate());
  options.forceVariant = "too_wide";
  spec.op = Operator::kWindow;
  bindings = {};
  draw({T::kQ, T::kOut}, 4, 16);
  draw({T::kK, T::kV}, 2, 16);
  auto engine = open(MissPolicy::kDefault);
  const Json part = compared(*engine).at("window");
  EXPECT_EQ(part["kernel"]["template"], "too_wide");
  EXPECT_EQ(part["definition"]["template"], "attention");
  EXPECT_EQ(part["same_kernel"], false);
  EXPECT_GT(part["relative_rms"], 1e-2) << part;
  EXPECT_GT(part["max_abs"], part["mean_abs"]) << part;
}

// An operator with one template: what a plan in memory runs was compiled before the template was mended.
TEST_F(DebugTest, AWrongColumnOfARotationIsFound) {
  const std::string path = "tile/rotate.tile";
  options.templateDir = copyTemplates();
  const std::string right = templates.read(path);
  for (const Operator op : {Operator::kRotate, Operator::kRotateBwd}) {
    spec.op = op;
    bindings = {};
    draw({T::kX, T::kOut}, 2, 16);
    // The first element of each pair stays as it is.
    templates.replace(path, "turns ? fma(second, -sine, first * cosine) : first", "first");
    auto engine = open(MissPolicy::kDefault);
    ASSERT_TRUE(run(*engine).isOk()) << run(*engine).toString();
    templates.write(path, right);
    const Json part = compared(*engine).at(std::string(operatorName(op)));
    EXPECT_EQ(part["same_kernel"], false);
    EXPECT_EQ(part["elements"], kTokens * 2 * 16);
    EXPECT_GT(part["relative_rms"], 1e-1) << part;
    auto mended = open(MissPolicy::kDefault);
    EXPECT_EQ(compared(*mended).at(std::string(operatorName(op)))["max_abs"], 0);
  }
}

TEST_F(DebugTest, AComparisonNeedsItsRoomAndACompiler) {
  spec.op = Operator::kWindow;
  auto engine = open(MissPolicy::kDefault);
  Result<PlanPointer> plain = engine->plan(spec, maxima, nullptr);
  Result<PlanPointer> compares = engine->planThatCompares(spec, maxima, nullptr);
  ASSERT_TRUE(plain.isOk() && compares.isOk());
  EXPECT_GE((*compares)->workspaceBytes(), (*plain)->workspaceBytes() + 2 * kTokens * 4 * 16 * sizeof(float));
  EXPECT_EQ((*plain)->comparisonReport().status().error().field, "plan");
  compares->reset();
  Result<PlanPointer> again = engine->plan(spec, maxima, nullptr);
  EXPECT_EQ((*again)->workspaceBytes(), (*plain)->workspaceBytes()) << "its memory is used again, not what it was";
  EXPECT_FALSE((*again)->comparisonReport().isOk());

  // Room for the outputs of the operator alone, whatever the keys would be compressed to.
  const Maxima oneQuery = {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = int64_t{1} << 20};
  Result<PlanPointer> narrow = engine->plan(spec, oneQuery, nullptr);
  Result<PlanPointer> comparesNarrow = engine->planThatCompares(spec, oneQuery, nullptr);
  ASSERT_TRUE(narrow.isOk() && comparesNarrow.isOk());
  EXPECT_LT((*comparesNarrow)->workspaceBytes(), (*narrow)->workspaceBytes() + (size_t{1} << 16));

  // Room for the new tokens' outputs, and none for the compressed rows of a cache.
  spec.op = Operator::kDecode;
  spec.layout = Layout::kPacked;
  const Maxima decodes = {.batch = 1, .tokensQ = 9, .seqlenQ = 9, .seqlenK = int64_t{1} << 20};
  Result<PlanPointer> decoding = engine->plan(spec, decodes, nullptr);
  Result<PlanPointer> comparesDecoding = engine->planThatCompares(spec, decodes, nullptr);
  ASSERT_TRUE(decoding.isOk() && comparesDecoding.isOk());
  EXPECT_LT((*comparesDecoding)->workspaceBytes(), (*decoding)->workspaceBytes() + (size_t{1} << 20));
  // Of the kernels for few queries none is compared, because each computes only a part of a result.
  const Maxima step = {.batch = 64, .tokensQ = 64, .seqlenQ = 1, .seqlenK = 4096};
  Result<PlanPointer> stepping = engine->plan(spec, step, nullptr);
  Result<PlanPointer> comparesStepping = engine->planThatCompares(spec, step, nullptr);
  ASSERT_TRUE(stepping.isOk() && comparesStepping.isOk());
  EXPECT_EQ((*comparesStepping)->workspaceBytes(), (*stepping)->workspaceBytes());
  spec.op = Operator::kWindow;
  spec.layout = Layout::kDense;

  auto strict = open(MissPolicy::kFail);
  const Status status = strict->planThatCompares(spec, maxima, nullptr).status();
  EXPECT_EQ(strict->counters().plansFailed, 1u) << "its kernel was found, what defines it was not";
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_NE(status.error().hint.find("miss policy"), std::string::npos) << status.toString();
}

} // namespace
} // namespace nsa
