// The C ABI from a stored kernel to a finished run, and who outlives whom.
#include "tests/unit/runtime/c_api_fixture.h"
#include "tests/unit/runtime/counted_calls.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <thread>

namespace nsa::test::c_api {
namespace {

constexpr const char *kAllParams =
    "param view q bf16 3\nparam view k bf16 3\nparam view v bf16 3\nparam view out bf16 3\n"
    "param view lse fp32 3\nparam view sequences int32 2\nparam i32 seqlen_q\nparam i32 seqlen_k\n"
    "param i32 max_seqlen_q\nparam i32 max_seqlen_k\nparam i32 total_q\n"
    "param i32 total_k\nparam i32 window\nparam f32 scale_log2\nparam view status int32 1\n";

TEST_F(CApi, StoredKernelRunsOncePerProgram) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 1024}, countingCode());
  Engine engine(cache);
  ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_GE(plan.workspaceBytes, 1024u);
  ASSERT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  uint64_t programs = 0;
  memcpy(&programs, call.memory[3], sizeof programs);
  EXPECT_EQ(programs, 2u * 2 * 2); // ceildiv(16 * 2, 16), kv_heads, batch
  std::string text = nsa_plan_describe(plan.handle);
  for (const char *part : {"\"source\": \"database\"", "\"template\": \"counting\"", "\"tuned\": true",
                           "\"config\": \"tile=16\"", "\"milliseconds\"", "\"fallbacks\": []"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  Plan second(engine, call);
  ASSERT_EQ(second.status, NSA_OK);
  EXPECT_NE(std::string(nsa_plan_describe(second.handle)).find("\"source\": \"memory\""), std::string::npos);
  EXPECT_EQ(engine.stats().plans_from_database, 1u);
  EXPECT_EQ(engine.stats().plans_from_memory, 1u);
  EXPECT_EQ(engine.stats().runs, 1u);
}

// One spec may serve a prompt's operators and decode.
TEST_F(CApi, APageSizeIsDecodesAlone) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, countingCode());
  Engine engine(cache);
  for (const int32_t pageSize : {64, 7, -1}) {
    call.spec.page_size = pageSize;
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  }
}

TEST_F(CApi, EverySlotIsFilled) {
  for (nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED}) {
    Call call(layout);
    // q first in the kernel's arguments: the copy of the slots lands there.
    store(call,
          {.templateName = layout == NSA_LAYOUT_DENSE ? "copy_dense" : "copy_packed",
           .params = kAllParams,
           .grid = "1 ; 1 ; 1"},
          copyingCode(39));
    Engine engine(cache);
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    call.set(NSA_OUT, call.memory[3], NSA_BF16,
             layout == NSA_LAYOUT_DENSE ? std::vector<int64_t>{2, 16, 4, 17} : std::vector<int64_t>{16, 4, 17});
    call.tensors[NSA_OUT].shape[call.tensors[NSA_OUT].rank - 1] = 16; // rows of 17, no longer aligned to 16 bytes
    ASSERT_EQ(plan.run(call), NSA_OK) << plan.error.message;
    uint64_t slots[39];
    memcpy(slots, call.memory[0], sizeof slots);
    bool packed = layout == NSA_LAYOUT_PACKED;
    const uint64_t batchStride = packed ? 0 : 1;
    auto address = [](const void *pointer) { return reinterpret_cast<uint64_t>(pointer); };
    const uint64_t expected[37] = {address(call.memory[0]),
                                   batchStride * 16 * 4 * 8,
                                   4 * 8,
                                   8,
                                   1,
                                   address(call.memory[1]),
                                   batchStride * 32 * 2 * 8,
                                   2 * 8,
                                   8,
                                   1,
                                   address(call.memory[2]),
                                   batchStride * 32 * 2 * 16,
                                   2 * 16,
                                   16,
                                   1,
                                   address(call.memory[3]),
                                   batchStride * 16 * 4 * 17,
                                   4 * 17,
                                   17,
                                   0,
                                   address(call.lseMemory),
                                   batchStride * 16 * 4,
                                   4,
                                   1,
                                   kViewHoldsFloats,
                                   packed ? address(plan.workspace) : 0,
                                   packed ? 8u : 0u,
                                   packed ? 1u : 0u,
                                   0,
                                   packed ? 0u : 16u,
                                   packed ? 0u : 32u,
                                   20,
                                   40,
                                   16,
                                   32,
                                   7,
                                   std::bit_cast<uint32_t>(1 / std::sqrt(8.0f) * std::numbers::log2e_v<float>)};
    for (size_t i = 0; i < std::size(expected); ++i)
      EXPECT_EQ(slots[i], expected[i]) << "slot " << i << (packed ? " packed" : " dense");
    EXPECT_NE(slots[37], 0u) << "status word";
    EXPECT_EQ(slots[38], 1u) << "status stride";
  }
}

TEST_F(CApi, ARunAllocatesAndLocksNothing) {
  for (nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED}) {
    Call call(layout);
    store(call, {.templateName = "lean", .params = kAllParams, .grid = "1 ; 1 ; 1"}, countingCode());
    Engine engine(cache);
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    size_t allocationsBefore = allocations, locksBefore = locks;
    nsa_status status = plan.run(call);
    size_t allocated = allocations - allocationsBefore, locked = locks - locksBefore;
    EXPECT_EQ(status, NSA_OK) << plan.error.message;
    EXPECT_EQ(allocated, 0u) << (layout == NSA_LAYOUT_PACKED ? "packed" : "dense");
    EXPECT_EQ(locked, 0u) << (layout == NSA_LAYOUT_PACKED ? "packed" : "dense");
    // The counter sees the library: an error is composed text.
    call.drop(NSA_Q);
    allocationsBefore = allocations;
    EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
#if NSA_COUNTS_CALLS
    EXPECT_GT(allocations, allocationsBefore);
#endif
  }
}

TEST_F(CApi, APlanFromMemoryAllocatesNothing) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, countingCode());
  Engine engine(cache);
  ASSERT_EQ(Plan(engine, call).status, NSA_OK);
  call.maxima.max_seqlen_k = 37; // of the same bucket, so of the same problem
  nsa_plan *plan = nullptr;
  nsa_error error;
  const size_t allocationsBefore = allocations, locksBefore = locks;
  const nsa_status status =
      nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &plan, &error);
  nsa_plan_destroy(plan);
  const size_t allocated = allocations - allocationsBefore, locked = locks - locksBefore;
  EXPECT_EQ(status, NSA_OK) << error.message;
  EXPECT_EQ(allocated, 0u);
  EXPECT_EQ(engine.stats().plans_from_memory, 1u);
#if NSA_COUNTS_CALLS
  EXPECT_EQ(locked, 2u) << "the thread's own shard of the pool, once each way; the counter sees the library";
#else
  (void)locked;
#endif
}

TEST_F(CApi, APlanBoundsItsRunsByItsOwnMaxima) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, countingCode());
  Engine engine(cache);
  Plan wide(engine, call);
  call.maxima.max_seqlen_k = 33; // shares the kernel, not the bounds
  Plan narrow(engine, call);
  ASSERT_EQ(narrow.status, NSA_OK) << narrow.error.message;
  EXPECT_EQ(engine.stats().plans_from_memory, 1u);
  for (nsa_name name : {NSA_K, NSA_V})
    call.tensors[name].shape[1] = 34;
  EXPECT_EQ(wide.run(call), NSA_OK) << wide.error.message;
  EXPECT_EQ(narrow.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(narrow.error.field, "seqlen_k");
  EXPECT_STREQ(narrow.error.value, "34");
}

TEST_F(CApi, EmptyWorkLaunchesNothing) {
  Call dense(NSA_LAYOUT_DENSE);
  store(dense, {}, countingCode());
  Engine engine(cache);
  Plan plan(engine, dense);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  for (int axis : {0, 1}) { // no sequence; no query
    Call empty(NSA_LAYOUT_DENSE);
    for (nsa_name name : {NSA_Q, NSA_OUT, NSA_LSE})
      empty.tensors[name].shape[axis] = 0;
    if (axis == 0)
      empty.tensors[NSA_K].shape[0] = empty.tensors[NSA_V].shape[0] = 0;
    empty.tensors[NSA_Q].data = empty.tensors[NSA_OUT].data = nullptr;
    EXPECT_EQ(plan.run(empty), NSA_OK) << plan.error.message;
    EXPECT_EQ(empty.memory[3][0], 0);
  }
}

TEST_F(CApi, BranchTensorsComeBeforeSharedOnes) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.params = "param view k bf16 3\n", .grid = "1 ; 1 ; 1"}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  uint64_t hits[2048] = {};
  call.tensors[NSA_K_WIN] = call.tensors[NSA_K];
  call.tensors[NSA_K_WIN].data = hits;
  call.bindings.push_back({NSA_K_WIN, &call.tensors[NSA_K_WIN]});
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  EXPECT_EQ(hits[0], 1u);
  EXPECT_EQ(call.memory[1][0], 0);
}

TEST_F(CApi, OneCuSeqlensStandsForBoth) {
  for (nsa_name dropped : {NSA_CU_SEQLENS_Q, NSA_CU_SEQLENS_K}) {
    Call call(NSA_LAYOUT_PACKED);
    store(call, {}, countingCode());
    Engine engine(cache);
    Plan plan(engine, call);
    call.drop(dropped);
    std::copy(call.offsetsQ, call.offsetsQ + 3, call.offsetsK);
    EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  }
}

TEST_F(CApi, Names) {
  EXPECT_EQ(nsa_abi_version(), static_cast<uint32_t>(NSA_ABI_VERSION));
  EXPECT_STRNE(nsa_version(), "");
  EXPECT_STRNE(nsa_source_id(), "");
  EXPECT_STREQ(nsa_status_name(NSA_CACHE_MISS), "cache miss");
  EXPECT_STREQ(nsa_status_name(static_cast<nsa_status>(99)), "unknown status");
}

TEST_F(CApi, APlanOutlivesItsEngine) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, countingCode());
  auto engine = std::make_unique<Engine>(cache);
  Plan plan(*engine, call);
  engine.reset();
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
}

// The last one, a plan of any thread or the handle, ends the engine. The address sanitizer finds what is left.
TEST_F(CApi, PlansOfManyThreadsOutliveTheirEngine) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, countingCode());
  for (int round = 0; round < 20; ++round) {
    auto engine = std::make_unique<Engine>(cache);
    std::vector<std::unique_ptr<Plan>> plans(24);
    {
      std::vector<std::jthread> threads;
      for (size_t thread = 0; thread < 8; ++thread)
        threads.emplace_back([&, thread] {
          for (size_t i = thread; i < plans.size(); i += 8)
            plans[i] = std::make_unique<Plan>(*engine, call);
        });
    }
    std::vector<std::jthread> threads;
    for (size_t thread = 0; thread < 8; ++thread)
      threads.emplace_back([&, thread] {
        for (size_t i = 0; i < plans.size(); i += 8)
          plans[i + (thread + 3) % 8].reset(); // not the thread that made it
      });
    engine.reset();
  }
}

TEST_F(CApi, EightThreadsPlanAndRun) {
  Call prototype(NSA_LAYOUT_DENSE);
  constexpr int kThreads = 8, kRounds = 50;
  // Four problems, so that some threads meet and some do not.
  for (int window : {1, 2, 4, 7}) {
    prototype.spec.window = window;
    store(prototype, {.scratchBytes = 256}, countingCode());
  }
  Engine engine(cache);
  ASSERT_EQ(engine.status, NSA_OK);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&engine, thread] {
        auto call = std::make_unique<Call>(NSA_LAYOUT_DENSE);
        const int windows[] = {1, 2, 4, 7};
        for (int round = 0; round < kRounds; ++round) {
          call->spec.window = windows[(thread + round) % 4];
          Plan plan(engine, *call);
          ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
          uint64_t before = 0, after = 0;
          memcpy(&before, call->memory[3], sizeof before);
          ASSERT_EQ(plan.run(*call), NSA_OK) << plan.error.message;
          memcpy(&after, call->memory[3], sizeof after);
          ASSERT_EQ(after - before, 8u);
        }
      });
  }
  nsa_stats stats = engine.stats();
  EXPECT_EQ(stats.runs, static_cast<uint64_t>(kThreads * kRounds));
  EXPECT_EQ(stats.plans_from_database, 4u) << "threads that miss the same plan wait for the first";
  EXPECT_EQ(stats.plans_from_memory + stats.plans_from_database, static_cast<uint64_t>(kThreads * kRounds));
}

} // namespace
} // namespace nsa::test::c_api
