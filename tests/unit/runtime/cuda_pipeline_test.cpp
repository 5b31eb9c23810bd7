// Operators of several kernels on a GPU, against a driver that computes nothing: a run is its launches, with no call of
// the driver between them, and neither allocates nor locks.
#include "runtime/engine/choices/routes.h"
#include "tests/unit/runtime/counted_calls.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/whole_calls.h"

#include <algorithm>

namespace nsa::test::c_api {
namespace {

class CudaPipeline : public CApi {
protected:
  std::unique_ptr<KernelStore> openStore() const {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = cache, .readOnly = false}, warning);
    EXPECT_TRUE(store.isOk()) << store.status().toString();
    return std::move(*store);
  }
  void storeSteps(const AnyCall &call) {
    const std::unique_ptr<KernelStore> store = openStore();
    for (const Step &step : stepsOf(call.internalSpec(), call.internalMaxima()))
      storeReturning(*store, step, "sm_90a", NSA_FAKE_GPU_KEY);
  }
  // A kernel `decode_step` for the call, with some of its arguments.
  void storeDecodeStep(const AnyCall &call) {
    Spec spec = call.internalSpec();
    spec.decodeStep = true;
    const std::vector<Step> steps = stepsOf(spec, call.internalMaxima());
    ASSERT_EQ(steps.size(), 1u);
    const std::string pages = spec.pageSize ? " " + std::to_string(spec.pageSize) : "";
    storeChoice(*openStore(), steps[0].spec, steps[0].maxima,
                {.templateName = "returning_step_" + std::to_string(spec.pageSize),
                 .params = "param view arrivals int32 2\nparam view cache_seqlens int32 1\nparam view q_cmp bf16 3\n"
                           "param view k_win_cache bf16 3" +
                           pages + "\nparam i32 max_seqlen_q\n",
                 .grid = "cluster ; kv_heads ; batch",
                 .target = "sm_90a",
                 .config = "cluster=4"},
                codeOf({0xc3}), NSA_FAKE_GPU_KEY);
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

// A step of decode by the kernel `decode_step`: what it finds its tokens, its lengths and its marks by.
TEST_F(CudaPipeline, AForcedStepOfDecodeIsOneLaunch) {
  for (const int32_t pageSize : {0, static_cast<int32_t>(kPageSize)}) {
    SCOPED_TRACE(pageSize);
    DecodeCall call(NSA_LAYOUT_PACKED, pageSize);
    call.maxima.max_seqlen_q = 1;
    storeDecodeStep(call);
    Engine engine(cache, [](nsa_engine_options &options) {
      options.device = "cuda:0";
      options.force_variant = "decode_step";
    });
    ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    fake_gpu_keep_slots(13);
    for (int run = 0; run < 2; ++run) {
      const long launchesBefore = fake_gpu_launches();
      ASSERT_EQ(plan.run(call), NSA_OK) << plan.error.message;
      EXPECT_EQ(fake_gpu_launches() - launchesBefore, 1);
    }
    EXPECT_EQ(fake_gpu_last_grid()[0], 4u);
    EXPECT_EQ(fake_gpu_last_grid()[1], 2u);
    EXPECT_EQ(fake_gpu_last_grid()[2], 2u);
    const unsigned long *slots = fake_gpu_last_slots();
    EXPECT_NE(slots[0], 0u) << "marks of two words for each of eight new tokens and two heads";
    EXPECT_EQ(slots[1], 32u);
    EXPECT_EQ(slots[2], 16u);
    EXPECT_EQ(slots[4], reinterpret_cast<uintptr_t>(call.lengths));
    EXPECT_NE(slots[7], 0u) << "the queries of the compressed branch are those of all";
    EXPECT_NE(slots[12], 0u) << "one pool, or another one, is read by the window";
    fake_gpu_keep_slots(0);
  }
}

// The kernel does each step, unless a threshold says that others are faster. Where it cannot be had, the kernels that
// it replaces serve.
TEST_F(CudaPipeline, AStepOfDecodeIsOneLaunchWhereItsKernelIsStored) {
  DecodeCall call(NSA_LAYOUT_PACKED, kPageSize);
  call.maxima.max_seqlen_q = 1;
  storeSteps(call);
  const auto launchesOfPlan = [&](const char *why, bool isStep = false) {
    SCOPED_TRACE(why);
    Engine engine(cache, [](nsa_engine_options &options) {
      options.device = "cuda:0";
      options.miss_policy = NSA_MISS_FAIL;
    });
    EXPECT_EQ(engine.status, NSA_OK) << engine.error.message;
    const auto expectExplained = [&](const Engine &by) {
      char *text = nullptr;
      EXPECT_EQ(nsa_explain(by.handle, &call.spec, &call.maxima, &text, nullptr), NSA_OK);
      EXPECT_EQ(std::string(text).find("decode_step") != std::string::npos, isStep) << text;
      nsa_free(text);
    };
    expectExplained(engine); // what the first plan will be
    long launches = 0;
    for (int made = 0; made < 2; ++made) { // the second plan comes from memory
      Plan plan(engine, call);
      EXPECT_EQ(plan.status, NSA_OK) << plan.error.message;
      const long before = fake_gpu_launches();
      EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
      EXPECT_TRUE(made == 0 || fake_gpu_launches() - before == launches);
      launches = fake_gpu_launches() - before;
    }
    expectExplained(engine);
    return launches;
  };
  const long usual = launchesOfPlan("without the kernel");
  EXPECT_GT(usual, 1);
  StoredRoute route;
  route.family = splitsFamily(call.internalSpec());
  route.device = NSA_FAKE_GPU_KEY;
  route.name = splitsRoute(call.internalSpec(), call.internalMaxima());
  route.threshold = kTakesStep;
  ASSERT_TRUE(openStore()->putRoute(route).isOk());
  EXPECT_EQ(launchesOfPlan("with a threshold, without the kernel"), usual);
  storeDecodeStep(call);
  EXPECT_EQ(launchesOfPlan("with both", true), 1);
  route.threshold = StoredRoute::kNever;
  ASSERT_TRUE(openStore()->putRoute(route).isOk());
  EXPECT_EQ(launchesOfPlan("with a threshold that was measured without the kernel", true), 1);
  route.evidence = {{0, "rule 1/1/1", 1.0, 1.0, ""}, {kTakesStep, "decode_step", 1.2, 1.2, ""}};
  ASSERT_TRUE(openStore()->putRoute(route).isOk());
  EXPECT_EQ(launchesOfPlan("with other kernels that were faster"), usual);
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
