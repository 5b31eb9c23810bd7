// Operators of several kernels on a GPU, against a driver that computes nothing: a run is its launches, with no call of
// the driver between them, and neither allocates nor locks.
#include "tests/unit/runtime/counted_calls.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/whole_calls.h"

#include <algorithm>

namespace nsa::test::c_api {
namespace {

class CudaPipeline : public CApi {
protected:
  void storeSteps(const AnyCall &call) {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = cache, .readOnly = false}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    for (const Step &step : stepsOf(call.internalSpec(), call.internalMaxima()))
      storeReturning(**store, step, "sm_90a", NSA_FAKE_GPU_KEY);
  }
  // The first run of a plan and the one after it. Each step is launched once, except for the list that the caller does
  // not ask for.
  void expectLaunchesOnly(const AnyCall &call) {
    const std::vector<Step> steps = stepsOf(call.internalSpec(), call.internalMaxima());
    const long launches = std::ranges::count_if(steps, [](const Step &step) { return step.role != Role::kAscend; });
    storeSteps(call);
    Engine engine(cache, [](nsa_engine_options &options) { options.device = "cuda:0"; });
    ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    for (int run = 0; run < 2; ++run) {
      const long launchesBefore = fake_gpu_launches(), callsBefore = fake_gpu_calls();
      const size_t allocationsBefore = allocations, locksBefore = locks;
      const nsa_status status = plan.run(call);
      const size_t allocated = allocations - allocationsBefore, locked = locks - locksBefore;
      EXPECT_EQ(status, NSA_OK) << plan.error.message;
      EXPECT_EQ(allocated, 0u);
      EXPECT_EQ(locked, 0u);
      EXPECT_EQ(fake_gpu_launches() - launchesBefore, launches);
      // The host had no context current: asked, pushed, popped, for each launch.
      EXPECT_EQ(fake_gpu_calls() - callsBefore, 4 * launches);
    }
  }
};

TEST_F(CudaPipeline, ADecodeStepIsItsLaunchesAndNothingElse) {
  for (const nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED})
    for (const int32_t pageSize : {0, static_cast<int32_t>(kPageSize)}) {
      SCOPED_TRACE((layout == NSA_LAYOUT_PACKED ? "packed, pages of " : "dense, pages of ") + std::to_string(pageSize));
      // Lengths and pages are in device memory, where the host looks at nothing.
      DecodeCall few(layout, pageSize);
      expectLaunchesOnly(few);
      DecodeCall many(layout, pageSize);
      many.maxima.max_seqlen_q = 9; // the forward's kernels
      expectLaunchesOnly(many);
    }
}

TEST_F(CudaPipeline, AForwardPassIsItsLaunchesAndNothingElse) {
  for (const nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED}) {
    SCOPED_TRACE(layout == NSA_LAYOUT_PACKED ? "packed" : "dense");
    ForwardCall call(layout);
    expectLaunchesOnly(call);
  }
}

} // namespace
} // namespace nsa::test::c_api
