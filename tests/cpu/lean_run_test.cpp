// A run of an operator of several kernels allocates nothing and takes no lock: with the kernels that are compiled for
// it, through the pool of threads that runs them.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tests/unit/runtime/counted_calls.h"
#include "tools/support/decode_run.h"

namespace nsa::test {
namespace {

using tools::DecodeRun;

class LeanRun : public OperatorTest {
protected:
  template <typename Run> void expectLean(const Run &run) {
    const size_t allocationsBefore = allocations, locksBefore = locks;
    const Status status = run();
    const size_t allocated = allocations - allocationsBefore, locked = locks - locksBefore;
    ASSERT_TRUE(status.isOk()) << status.toString();
    EXPECT_EQ(allocated, 0u);
    EXPECT_EQ(locked, 0u);
  }
};

TEST_F(LeanRun, OfTheWholeForward) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const bool wantsAll : {false, true}) {
      Spec spec = smallSpec(Operator::kNsa, DType::kF32);
      spec.layout = layout;
      SCOPED_TRACE(std::string(layoutName(layout)) + (wantsAll ? ", all outputs" : ", out alone"));
      const OperatorInputs inputs = tools::drawInputs(spec, {{150, 150}, {190, 190}}, freshSeed());
      const tools::PlanHandle made = plan(spec, inputs.maxima);
      Result<tools::DeviceOperator> job = tools::DeviceOperator::upload(
          session->accelerator(), inputs, wantsAll ? tools::allOutputs(spec.op) : tools::requiredOutputs(spec.op));
      ASSERT_TRUE(job.isOk() && job->allocateWorkspace(made.get()).isOk());
      expectLean([&] { return job->enqueue(made.get()); });
    }
}

// Branch outputs too large for the workspace at once: kernels are launched again for each chunk of queries.
TEST_F(LeanRun, OfTheWholeForwardInChunks) {
  Spec spec = smallSpec(Operator::kNsa, DType::kF32);
  spec.queryHeads = 128;
  spec.vDim = 256;
  const OperatorInputs inputs = tools::drawInputs(spec, {{200}, {200}}, freshSeed());
  const tools::PlanHandle made = plan(spec, inputs.maxima);
  const int64_t outputs = int64_t{3} * spec.queryHeads * spec.vDim * inputs.extents.timeQ * dtypeBytes(spec.dtype);
  ASSERT_LT(static_cast<int64_t>(*tools::workspaceSize(made.get())), outputs);
  Result<tools::DeviceOperator> job =
      tools::DeviceOperator::upload(session->accelerator(), inputs, tools::requiredOutputs(spec.op));
  ASSERT_TRUE(job.isOk() && job->allocateWorkspace(made.get()).isOk());
  expectLean([&] { return job->enqueue(made.get()); });
}

TEST_F(LeanRun, OfADecodeStep) {
  const Spec spec = smallSpec(Operator::kNsa, DType::kF32);
  const OperatorInputs history = tools::drawInputs(spec, {{190, 190}, {190, 190}}, freshSeed());
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const int64_t mostNew : {1, 60}) // programs that share keys, and the forward's kernels
      for (const bool isPaged : {false, true}) {
        SCOPED_TRACE(std::string(layoutName(layout)) + ", " + std::to_string(mostNew) + " new tokens" +
                     (isPaged ? ", in pages" : ""));
        Result<DecodeRun> run = DecodeRun::open(
            session->accelerator(), history,
            {.room = 192, .mostNew = mostNew, .pageSize = isPaged ? 2 * spec.selBlock : 0, .layout = layout},
            isPaged ? tools::allOutputs(Operator::kDecode) : tools::requiredOutputs(Operator::kDecode));
        ASSERT_TRUE(run.isOk()) << run.status().toString();
        Result<tools::PlanHandle> made =
            tools::createPlan(session->engine(), run->spec(), run->maxima(), session->accelerator().stream());
        ASSERT_TRUE(made.isOk()) << made.status().toString();
        ASSERT_TRUE(run->allocateWorkspace(made->get()).isOk());
        for (int step = 0; step < 3; ++step) {
          ASSERT_TRUE(run->feed({mostNew, mostNew}).isOk());
          expectLean([&] { return run->enqueue(made->get()); });
        }
      }
}

// The counters see the library: what a refused call says is composed.
TEST_F(LeanRun, IsCounted) {
  const OperatorInputs inputs = tools::drawInputs(smallSpec(Operator::kNsa, DType::kF32), {{20}, {20}}, freshSeed());
  const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
  const size_t before = allocations;
  nsa_error error{};
  EXPECT_EQ(nsa_run(made.get(), nullptr, 0, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
#if NSA_COUNTS_CALLS
  EXPECT_GT(allocations, before);
#else
  EXPECT_EQ(allocations, before);
#endif
}

} // namespace
} // namespace nsa::test
