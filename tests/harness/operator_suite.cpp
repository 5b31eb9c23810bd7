// Every operator of the forward pass against the fp64 reference, output by output. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

namespace nsa::test {
namespace {

std::vector<OperatorCase> servedOperators() {
  return servedCases(operatorTable(), [](const OperatorCase &shape) { return shape.spec; });
}

class OperatorTable : public OperatorTest, public ::testing::WithParamInterface<OperatorCase> {
protected:
  static void SetUpTestSuite() {
    makeReadyForSuite(servedOperators(), [](const OperatorCase &shape) {
      return std::pair(shape.spec, tools::layOut(shape.spec, shape.lengths).maxima);
    });
  }
};

TEST_P(OperatorTable, MatchesTheReference) {
  std::mt19937_64 random(freshSeed());
  check(GetParam(), random);
}

INSTANTIATE_TEST_SUITE_P(Table, OperatorTable, ::testing::ValuesIn(servedOperators()),
                         [](const auto &info) { return info.param.name; });

// The gradient of `k` is d_k, and the gradient of `k_win` is d_k_win.
TEST_F(OperatorTest, GradientsAreNamedAfterTheTensorsThatAreRead) {
  using T = TensorName;
  for (const Operator op : {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd}) {
    SCOPED_TRACE(operatorName(op));
    OperatorInputs inputs = tools::drawInputs(smallSpec(op, DType::kBf16), {{90}, {90}}, freshSeed());
    const auto expectOutputs = [&](const std::set<T> &expected) {
      const NamedTensors outputs = run(inputs);
      std::set<T> names;
      for (const auto &[name, tensor] : outputs)
        names.insert(name);
      EXPECT_EQ(names, expected);
      checkOutputs(inputs, outputs);
    };
    const auto rename = [&](T from, T to) {
      auto tensor = inputs.tensors.extract(from);
      tensor.key() = to;
      inputs.tensors.insert(std::move(tensor));
    };
    if (op == Operator::kCmpBwd) {
      expectOutputs({T::kDQCmp, T::kDKComp, T::kDVComp, T::kDelta});
      rename(T::kQCmp, T::kQ);
      expectOutputs({T::kDQ, T::kDKComp, T::kDVComp, T::kDelta});
      continue;
    }
    expectOutputs({T::kDQ, T::kDKWin, T::kDVWin, T::kDelta});
    rename(T::kKWin, T::kK);
    expectOutputs({T::kDQ, T::kDK, T::kDVWin, T::kDelta});
    rename(T::kVWin, T::kV);
    expectOutputs({T::kDQ, T::kDK, T::kDV, T::kDelta});
  }
}

TEST_F(OperatorTest, ATimedRunTellsItsParts) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 128;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  spec.window = 100;
  const tools::OperatorInputs inputs = tools::drawInputs(spec, {{1200}, {1200}}, 1);
  Result<tools::PlanHandle> plan =
      tools::createPlan(session->engine(), spec, inputs.maxima, session->accelerator().stream());
  ASSERT_TRUE(plan.isOk()) << plan.status().toString();
  Result<tools::DeviceOperator> job = tools::DeviceOperator::upload(session->accelerator(), inputs, {});
  ASSERT_TRUE(job.isOk()) << job.status().toString();
  ASSERT_TRUE(job->allocateWorkspace(plan->get()).isOk());
  Result<std::vector<nsa_part_time>> parts = Status::error(ErrorCode::kInternal, "not run");
  const Result<double> wall = session->accelerator().time([&] {
    parts = job->runTimed(plan->get());
    return parts.status();
  });
  ASSERT_TRUE(wall.isOk()) << wall.status().toString();
  const char *const names[] = {"compress", "cmp", "select", "sel", "win", "combine"};
  ASSERT_EQ(parts->size(), std::size(names));
  double sum = 0;
  for (size_t i = 0; i < parts->size(); ++i) {
    EXPECT_STREQ((*parts)[i].name, names[i]);
    // On the CPU the queries go through in chunks; compression does not see queries.
    EXPECT_EQ((*parts)[i].launches, session->isCuda() || i == 0 ? 1 : 2);
    EXPECT_GT((*parts)[i].milliseconds, 0);
    sum += (*parts)[i].milliseconds;
  }
  EXPECT_LE(sum, *wall);
  EXPECT_GE(sum, 0.9 * *wall - 1) << "time that no part accounts for";
}

// Each geometry's kernels, which its operators share, are made at once.
class DrawnGeometries : public OperatorTest, public ::testing::WithParamInterface<int> {};

TEST_P(DrawnGeometries, MatchTheReference) {
  constexpr Operator kOperators[] = {
      Operator::kDense,       Operator::kWindow,   Operator::kCompress,  Operator::kCmp,    Operator::kSelect,
      Operator::kSel,         Operator::kCombine,  Operator::kNsa,       Operator::kRotate, Operator::kRotateBwd,
      Operator::kCombineBwd,  Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd, Operator::kInvert,
      Operator::kCompressBwd, Operator::kSelBwd,   Operator::kNsaBwd};
  const OperatorDrawLimits limits = drawLimits(*session);
  const Geometry &geometry = drawnGeometries(*session)[static_cast<size_t>(GetParam())];
  std::mt19937_64 random(freshSeed() + static_cast<uint64_t>(GetParam()));
  std::vector<OperatorCase> cases;
  for (const Operator op : kOperators) {
    if ((fieldsOf(op) & kRotary) && geometry.spec.qkDim < 2)
      continue; // no pair
    for (int i = 0; i < (session->isCuda() ? 2 : 1); ++i)
      cases.push_back(drawOperatorCase(geometry, op, random, limits));
  }
  std::vector<std::pair<Spec, Maxima>> plans;
  for (const OperatorCase &shape : cases)
    plans.emplace_back(shape.spec, geometry.maxima);
  session->makeReady(plans);
  for (const OperatorCase &shape : cases) {
    SCOPED_TRACE(shape.text());
    const OperatorInputs inputs = shape.drawInputs(random());
    checkOutputs(inputs, run(plan(shape.spec, geometry.maxima), inputs, shape.spacing));
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Drawn, DrawnGeometries, ::testing::Range(0, drawnCases(kDrawnGeometries)));

} // namespace
} // namespace nsa::test
