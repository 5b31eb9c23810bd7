// The kernels of the gradients of attention by themselves on every device, against the fp64 reference: dense, and
// packed with lengths of their own; and with each number of warps that the device admits. Some rows are NaN. Only the
// last queries see the last key, so that their dQ is NaN and the dQ of the other queries of their tile is not. The
// first query does not see the later keys, so that their dK and dV are no NaN.
#include "tests/harness/gradient_fixture.h"

namespace nsa::test {
namespace {

class AttentionGradients : public GradientTest {
protected:
  // The last key of each sequence is NaN for dQ, and the first query for dK and dV.
  void check(const char *program, Operator op, DType dtype, Placing placing, const std::string &warps = "") {
    check(program, specFor(op, dtype), placing, lengthsOf(placing), warps);
  }
  void check(const char *program, const Spec &whole, Placing placing, std::vector<SequenceLengths> lengths,
             const std::string &warps = "") {
    GradientProblem problem(whole, placing, std::move(lengths), random);
    if (program == std::string("attention_dkv"))
      problem.poisonFirstQueries();
    else
      problem.poisonLastKeys();
    check(program, problem, placing, warps);
  }
  void check(const char *program, GradientProblem &problem, Placing placing, const std::string &warps = "") {
    const DType dtype = problem.attention.spec.dtype;
    SCOPED_TRACE(std::string(program) + " " + std::string(operatorName(problem.attention.spec.op)) + " " +
                 std::string(dtypeName(dtype)) + " " + std::string(placingName(placing)) + " warps " + warps);
    const bool ofKeys = program == std::string("attention_dkv");
    const reference::AttentionResult result = reference::attend(problem.attention);
    const reference::AttentionGradient wanted =
        reference::differentiate(problem.attention, result, problem.gradientOfOut());

    const ProgramKernel kernel(*device, program, *parseOperator(program), fixedOf(problem),
                               warps.empty() ? ProgramKernel::Pairs() : ProgramKernel::Pairs{{"warps", warps}});
    const DeviceArray q = problem.array(*device, problem.q), dOut = problem.array(*device, problem.dOut),
                      lse = problem.rows(*device, floats(result.lse)),
                      delta = problem.rows(*device, floats(wanted.delta)), dq = problem.untouched(*device, problem.q),
                      dk = problem.untouched(*device, problem.k), dv = problem.untouched(*device, problem.v);
    Arguments arguments = problem.arguments(*device);
    for (const auto &[name, array] : {std::pair("q", &q), {"d_out", &dOut}, {"d_q", &dq}, {"d_k", &dk}, {"d_v", &dv}})
      array->bind(arguments, name);
    for (const auto &[name, array] : {std::pair("lse", &lse), {"delta", &delta}})
      array->bind(arguments, name, /*columnsToo=*/true);
    arguments.i32("splits", 1);
    for (const char *absent : {"dk_parts", "dv_parts", "dq_sum", "dq_base", "weight", "delta_next"})
      arguments.view(absent, nullptr, {0, 0, 0});
    kernel.run(arguments, problem.gridSizes());
    std::vector<double> k, v;
    for (const reference::KeyGradient &own : wanted.keys) {
      k.insert(k.end(), own.k.begin(), own.k.end());
      v.insert(v.end(), own.v.begin(), own.v.end());
    }
    if (ofKeys) {
      expectClose(problem.read(dk, problem.k), k, dtype, "dK");
      expectClose(problem.read(dv, problem.v), v, dtype, "dV");
    } else {
      expectClose(problem.read(dq, problem.q), wanted.q, dtype, "dQ");
    }
  }

  static Spec specFor(Operator op, DType dtype) {
    Spec spec = specOf(op, dtype, 3, 40, 24);
    spec.window = op == Operator::kWindow ? 13 : std::numeric_limits<int32_t>::max();
    spec.cmpBlock = op == Operator::kCmp ? 8 : 1;
    spec.cmpStride = op == Operator::kCmp ? 4 : 1;
    return spec;
  }
  ProgramKernel::Pairs fixedOf(const GradientProblem &problem) const {
    const Spec &spec = problem.attention.spec;
    ProgramKernel::Pairs fixed = problem.fixed();
    fixed["cmp_block"] = std::to_string(spec.cmpBlock);
    fixed["cmp_stride"] = std::to_string(spec.cmpStride);
    if (splitsDs)
      fixed["split_ds"] = "1";
    return fixed;
  }
  // A packed sequence has no queries, and the last one has fewer keys than the others.
  static std::vector<SequenceLengths> lengthsOf(Placing placing) {
    if (placing == Placing::kPacked)
      return {{37, 61}, {0, 17}, {12, 40}};
    return {{37, 61}, {37, 61}};
  }

  // Runs attention_dq over compressed keys with a delta that is wrong by `off` in all rows. All scores are 0, so all
  // weights of a row are equal, and the keys of a sequence grow along a direction of its own: their mean is neither the
  // first key nor the last. The kernel must find out that the sum of dS is not 0, and correct dQ and delta.
  void checkWrongDelta(const Spec &spec, Placing placing, std::vector<SequenceLengths> lengths, double off,
                       double gradientScale) {
    SCOPED_TRACE(std::string(dtypeName(spec.dtype)) + " " + std::string(placingName(placing)) + " off by " +
                 std::to_string(off));
    GradientProblem problem(spec, placing, std::move(lengths), random);
    constexpr double kCommon = 4;
    problem.alignKeys(kCommon, gradientScale);
    const reference::AttentionResult result = reference::attend(problem.attention);
    const reference::AttentionGradient wanted =
        reference::differentiate(problem.attention, result, problem.gradientOfOut());
    std::vector<float> wrong = floats(wanted.delta);
    for (float &value : wrong)
      value += static_cast<float>(off);

    const ProgramKernel kernel(*device, "attention_dq", Operator::kAttentionDq, fixedOf(problem), {});
    const DeviceArray q = problem.array(*device, problem.q), dOut = problem.array(*device, problem.dOut),
                      lse = problem.rows(*device, floats(result.lse)), delta = problem.rows(*device, wrong),
                      next = problem.rows(*device, std::vector<float>(wrong.size(), kNan)),
                      dq = problem.untouched(*device, problem.q);
    Arguments arguments = problem.arguments(*device);
    for (const auto &[name, array] : {std::pair("q", &q), {"d_out", &dOut}, {"d_q", &dq}})
      array->bind(arguments, name);
    for (const auto &[name, array] : {std::pair("lse", &lse), {"delta", &delta}, {"delta_next", &next}})
      array->bind(arguments, name, /*columnsToo=*/true);
    for (const char *absent : {"dq_sum", "dq_base", "weight"})
      arguments.view(absent, nullptr, {0, 0, 0});
    kernel.run(arguments, problem.gridSizes());

    // Without the correction dQ is wrong by off times the mean key, which is from kCommon to 2 kCommon. A result of
    // fp16 is rounded by up to half of its least number.
    const double scale = reference::softmaxScale(spec);
    const double limit = 0.05 * off * kCommon * scale + (spec.dtype == DType::kF16 ? 0x1p-25 : 0);
    // With split_ds the sum is made of numbers that are not rounded.
    const double deltaLimit = (splitsDs ? 0.002 : 0.1) * off;
    const std::vector<double> got = problem.read(dq, problem.q);
    const std::vector<float> corrected = next.read<float>();
    ASSERT_EQ(got.size(), wanted.q.size());
    for (size_t row = 0; row < corrected.size(); ++row) {
      const bool seesKeys = std::isfinite(result.lse[row]);
      EXPECT_NEAR(corrected[row], seesKeys ? wanted.delta[row] : wrong[row], deltaLimit) << "row " << row;
      for (size_t i = row * static_cast<size_t>(spec.qkDim); i < (row + 1) * static_cast<size_t>(spec.qkDim); ++i)
        ASSERT_NEAR(got[i], wanted.q[i], seesKeys ? limit : 0) << "row " << row << ", element " << i;
    }
  }

  static constexpr const char *kPrograms[] = {"attention_dq", "attention_dkv"};
  bool splitsDs = false; // the kernels are compiled with split_ds
  std::mt19937_64 random{freshSeed()};
};

TEST_F(AttentionGradients, OfDenseWindowAndCompressedAttention) {
  for (const char *program : kPrograms)
    for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp}) {
      for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
        check(program, op, dtype, Placing::kDense);
      check(program, op, DType::kBf16, Placing::kPacked);
    }
}

// The kernels that a plan of nsa_bwd has where phi has weights. On a CPU nothing is rounded, and nothing is split.
TEST_F(AttentionGradients, OfCompressedAttentionWhoseDsIsSplit) {
  splitsDs = true;
  for (const char *program : kPrograms)
    for (const DType dtype : {DType::kBf16, DType::kF16})
      for (const Placing placing : {Placing::kDense, Placing::kPacked})
        check(program, Operator::kCmp, dtype, placing);
}

TEST_F(AttentionGradients, TakeWhatIsWrongInDeltaFromTheQueriesAndFromDelta) {
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
    for (const bool isSplit : {false, true}) {
      splitsDs = isSplit;
      const Spec spec = specFor(Operator::kCmp, dtype);
      for (const Placing placing : {Placing::kDense, Placing::kPacked})
        if (!isSplit || dtype != DType::kF32)
          checkWrongDelta(spec, placing, lengthsOf(placing), 0.5, 1);
    }
  splitsDs = false;
  // Sums of a few of the least numbers of fp16, over two keys.
  checkWrongDelta(specFor(Operator::kCmp, DType::kF16), Placing::kDense, {{1, 12}, {1, 12}}, 0x1p-22, 0x1p-24);
}

// Rows that see no key have a gradient of 0, whatever key 0 holds.
TEST_F(AttentionGradients, OfRowsThatSeeNoCompressedKey) {
  for (const Placing placing : {Placing::kDense, Placing::kPacked}) {
    GradientProblem problem(specFor(Operator::kCmp, DType::kBf16), placing, {{61, 61}, {61, 61}}, random);
    problem.poisonFirstKeys();
    check("attention_dq", problem, placing);
  }
}

// Numbers of tokens that 32 bits hold only one by one: two strides of a tile of keys would not fit.
TEST_F(AttentionGradients, OfBlocksOfManyTokens) {
  Spec spec = specFor(Operator::kCmp, DType::kF32);
  spec.cmpBlock = spec.cmpStride = 1 << 27;
  for (const char *program : kPrograms)
    check(program, spec, Placing::kDense, {{9, 5 * (1 << 27) + 2}});
}

// A kernel of each number of warps, in bf16 and dense.
TEST_F(AttentionGradients, OfEachNumberOfWarps) {
  const GradientProblem problem(specFor(Operator::kDense, DType::kBf16), Placing::kDense, lengthsOf(Placing::kDense),
                                random);
  for (const char *program : kPrograms) {
    const std::vector<std::string> warps =
        ProgramKernel::valuesOf(*device, program, *parseOperator(program), fixedOf(problem), "warps");
    EXPECT_EQ(warps.size(), isTestDeviceCuda() ? 4u : 1u);
    for (const std::string &number : warps)
      check(program, Operator::kDense, DType::kBf16, Placing::kDense, number);
  }
}

// What a plan of nsa_bwd hands on to later kernels. The kernels of queries correct a wrong delta, so no gradient of
// fp32 would show it.
TEST_F(GradientTest, OfGatesHandOnTheDeltaAndTheWeightOfEachBranch) {
  constexpr int32_t kBranches = 3, kGroup = 3, kColumns = 24, kTimes = 37;
  constexpr int64_t kBatch = 2, kHeads = kKvHeads * kGroup, kRows = kBatch * kTimes * kHeads;
  const ProgramKernel kernel(*device, "combine_bwd", Operator::kCombineBwd,
                             {{"dtype", "fp32"},
                              {"v_dim", std::to_string(kColumns)},
                              {"group", std::to_string(kGroup)},
                              {"packed", "0"},
                              {"gate", "value"},
                              {"gate_per_group", "0"}});
  std::mt19937_64 random{freshSeed()};
  std::normal_distribution<float> normal;
  const auto draw = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    std::ranges::generate(values, [&] { return normal(random); });
    return values;
  };
  const std::vector<int64_t> rows = {kBatch, kTimes, kHeads};
  const auto withColumns = [&](int64_t columns) { return std::vector<int64_t>{kBatch, kTimes, kHeads, columns}; };
  Arguments arguments;
  arguments.i32("seqlen_q", kTimes).i32("seqlen_k", kTimes).i32("total_q", kBatch * kTimes);
  arguments.i32("query_begin", 0).i32("query_end", std::numeric_limits<int32_t>::max()).i32("query_step", 1);
  arguments.view("sequences", nullptr, {0, 0});
  const std::vector<float> dOut = draw(kRows * kColumns), gates = draw(kRows * kBranches);
  std::vector<std::vector<float>> outputs;
  std::vector<DeviceArray> arrays, deltas, weights;
  const auto bind = [&](const std::string &name, DeviceArray array, std::vector<DeviceArray> &kept, bool columnsToo) {
    array.bind(arguments, name, columnsToo);
    kept.push_back(std::move(array));
  };
  bind("d_out", DeviceArray::of(*device, dOut, withColumns(kColumns)), arrays, false);
  bind("gates", DeviceArray::of(*device, gates, withColumns(kBranches)), arrays, true);
  bind("d_gates", untouched(withColumns(kBranches)), arrays, true);
  for (const std::string branch : {"cmp", "sel", "win"}) {
    outputs.push_back(draw(kRows * kColumns));
    bind("o_" + branch, DeviceArray::of(*device, outputs.back(), withColumns(kColumns)), arrays, false);
    bind("delta_" + branch, untouched(rows), deltas, true);
    bind("weight_" + branch, untouched(rows), weights, true);
    arguments.view("d_o_" + branch, nullptr, {0, 0, 0});
  }
  kernel.run(arguments, {{"max_seqlen_q", kTimes}, {"kv_heads", kKvHeads}, {"batch", kBatch}});

  for (size_t branch = 0; branch < kBranches; ++branch) {
    SCOPED_TRACE(branch);
    std::vector<double> delta(kRows), gate(kRows);
    for (size_t row = 0; row < kRows; ++row) {
      gate[row] = gates[row * kBranches + branch];
      for (size_t i = row * kColumns; i < (row + 1) * kColumns; ++i)
        delta[row] += static_cast<double>(dOut[i]) * outputs[branch][i];
    }
    const std::vector<float> gotDelta = deltas[branch].read<float>(), gotGate = weights[branch].read<float>();
    expectClose({gotDelta.begin(), gotDelta.end()}, delta, DType::kF32, "delta");
    expectClose({gotGate.begin(), gotGate.end()}, gate, DType::kF32, "weight");
  }
}

} // namespace
} // namespace nsa::test
