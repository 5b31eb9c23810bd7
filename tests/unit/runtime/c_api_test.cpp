// The C ABI from a stored kernel to a finished run, and every rule of spec.md 1-2 with the field, value and rule that
// its error names. No compiler takes part: kernels are assembled by hand and put into a store.
#include "runtime/include/nsa/nsa.h"

#include "runtime/base/manifest.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/counted_calls.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

using namespace nsa;
using test::allocations, test::locks;

namespace {

constexpr const char *kAllParams =
    "param view q bf16 3\nparam view k bf16 3\nparam view v bf16 3\nparam view out bf16 3\n"
    "param view lse fp32 3\nparam view cu_seqlens_q int32 1\n"
    "param view cu_seqlens_k int32 1\nparam i32 seqlen_q\nparam i32 seqlen_k\n"
    "param i32 max_seqlen_q\nparam i32 max_seqlen_k\nparam i32 total_q\n"
    "param i32 total_k\nparam i32 window\nparam f32 scale_log2\nparam view status int32 1\n";

// One call with all its pieces in reach, so that a test spoils exactly one.
struct Call {
  alignas(16) uint16_t memory[4][4096] = {}; // q, k, v, out
  float lseMemory[1024] = {};
  int32_t offsetsQ[3] = {0, 5, 16};
  int32_t offsetsK[3] = {0, 9, 32};
  nsa_spec spec = NSA_INIT(nsa_spec);
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  nsa_tensor tensors[NSA_NAMES];
  std::vector<nsa_binding> bindings;

  explicit Call(nsa_layout layout) {
    spec.op = NSA_OP_WINDOW;
    spec.dtype = NSA_BF16;
    spec.layout = layout;
    spec.query_heads = 4;
    spec.kv_heads = 2;
    spec.qk_dim = 8;
    spec.v_dim = 16;
    spec.window = 7;
    maxima.max_batch = 2;
    maxima.max_tokens_q = 40;
    maxima.max_seqlen_q = 20;
    maxima.max_seqlen_k = 40;
    if (layout == NSA_LAYOUT_DENSE) {
      set(NSA_Q, memory[0], NSA_BF16, {2, 16, 4, 8});
      set(NSA_K, memory[1], NSA_BF16, {2, 32, 2, 8});
      set(NSA_V, memory[2], NSA_BF16, {2, 32, 2, 16});
      set(NSA_OUT, memory[3], NSA_BF16, {2, 16, 4, 16});
      set(NSA_LSE, lseMemory, NSA_FP32, {2, 16, 4});
    } else {
      set(NSA_Q, memory[0], NSA_BF16, {16, 4, 8});
      set(NSA_K, memory[1], NSA_BF16, {32, 2, 8});
      set(NSA_V, memory[2], NSA_BF16, {32, 2, 16});
      set(NSA_OUT, memory[3], NSA_BF16, {16, 4, 16});
      set(NSA_LSE, lseMemory, NSA_FP32, {16, 4});
      set(NSA_CU_SEQLENS_Q, offsetsQ, NSA_INT32, {3});
      set(NSA_CU_SEQLENS_K, offsetsK, NSA_INT32, {3});
    }
  }
  Call(const Call &) = delete;

  void set(nsa_name name, void *data, nsa_dtype dtype, std::initializer_list<int64_t> shape) {
    nsa_tensor &tensor = tensors[name] = NSA_INIT(nsa_tensor);
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.rank = static_cast<int32_t>(shape.size());
    int64_t stride = 1;
    for (auto axis = static_cast<int>(shape.size()); axis-- > 0;) {
      tensor.shape[axis] = shape.begin()[axis];
      tensor.strides[axis] = stride;
      stride *= shape.begin()[axis];
    }
    drop(name);
    bindings.push_back({name, &tensor});
  }
  void drop(nsa_name name) {
    std::erase_if(bindings, [&](const nsa_binding &binding) { return binding.name == name; });
  }

  Spec internalSpec() const {
    Spec result;
    result.op = static_cast<Operator>(spec.op);
    result.dtype = static_cast<DType>(spec.dtype);
    result.layout = static_cast<Layout>(spec.layout);
    result.queryHeads = spec.query_heads;
    result.kvHeads = spec.kv_heads;
    result.qkDim = spec.qk_dim;
    result.vDim = spec.v_dim;
    result.window = spec.window;
    return result;
  }
  Maxima internalMaxima() const {
    return {maxima.max_batch, maxima.max_tokens_q, maxima.max_seqlen_q, maxima.max_seqlen_k};
  }
};

struct Engine {
  nsa_engine *handle = nullptr;
  nsa_error error = {};
  nsa_status status;
  std::vector<std::string> log;

  explicit Engine(const std::string &cache, const std::function<void(nsa_engine_options &)> &change = {}) {
    nsa_engine_options options = NSA_INIT(nsa_engine_options);
    options.device = "cpu";
    options.cache_path = cache.c_str();
    options.miss_policy_set = 1;
    options.miss_policy = NSA_MISS_FAIL;
    options.cpu_threads = 2;
    options.log = [](void *user, nsa_log_level, const char *tag, const char *message) {
      static_cast<Engine *>(user)->log.push_back(std::string(tag) + ": " + message);
    };
    options.log_user = this;
    options.log_level = NSA_LOG_WARNING;
    if (change)
      change(options);
    status = nsa_engine_create(&options, &handle, &error);
  }
  ~Engine() { nsa_engine_destroy(handle); }
  Engine(const Engine &) = delete;

  nsa_stats stats() const {
    nsa_stats result = NSA_INIT(nsa_stats);
    EXPECT_EQ(nsa_engine_stats(handle, &result, nullptr), NSA_OK);
    return result;
  }
};

struct Plan {
  nsa_plan *handle = nullptr;
  nsa_error error = {};
  nsa_status status;
  std::vector<std::byte> memory;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;

  Plan(Engine &engine, const Call &call) {
    status = nsa_plan_create(engine.handle, &call.spec, &call.maxima, nullptr, &handle, &error);
    if (status != NSA_OK)
      return;
    EXPECT_EQ(nsa_plan_workspace_size(handle, &workspaceBytes, nullptr), NSA_OK);
    memory.resize(workspaceBytes + 256);
    workspace = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory.data()) + 255) & ~uintptr_t{255});
  }
  ~Plan() { nsa_plan_destroy(handle); }
  Plan(const Plan &) = delete;

  nsa_status run(const Call &call) {
    return nsa_run(handle, call.bindings.data(), call.bindings.size(), workspace, workspaceBytes, nullptr, &error);
  }
};

class CApi : public testing::Test {
protected:
  void store(const Call &call, const test::KernelText &text, std::vector<std::byte> code) {
    test::storeKernel(cache, call.internalSpec(), call.internalMaxima(), text, std::move(code));
  }

  test::Scratch folder;
  std::string cache = folder.file("kernels.db");
};

TEST_F(CApi, StoredKernelRunsOncePerProgram) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 1024}, test::countingCode());
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

TEST_F(CApi, EverySlotIsFilled) {
  for (nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED}) {
    Call call(layout);
    // q first in the kernel's arguments: the copy of the slots lands there.
    store(call,
          {.templateName = layout == NSA_LAYOUT_DENSE ? "copy_dense" : "copy_packed",
           .params = kAllParams,
           .grid = "1 ; 1 ; 1"},
          test::copyingCode(41));
    Engine engine(cache);
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    call.tensors[NSA_OUT].strides[call.tensors[NSA_OUT].rank - 2] = 17; // rows no longer aligned to 16 bytes
    ASSERT_EQ(plan.run(call), NSA_OK) << plan.error.message;
    uint64_t slots[41];
    memcpy(slots, call.memory[0], sizeof slots);
    bool packed = layout == NSA_LAYOUT_PACKED;
    const uint64_t batchStride = packed ? 0 : 1;
    auto address = [](const void *pointer) { return reinterpret_cast<uint64_t>(pointer); };
    const uint64_t expected[40] = {address(call.memory[0]),
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
                                   batchStride * 16 * 4 * 16,
                                   4 * 16,
                                   17,
                                   0,
                                   address(call.lseMemory),
                                   batchStride * 16 * 4,
                                   4,
                                   1,
                                   0,
                                   packed ? address(call.offsetsQ) : 0,
                                   packed ? 1u : 0u,
                                   0,
                                   packed ? address(call.offsetsK) : 0,
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
    for (size_t i = 0; i < 39; ++i) {
      // The lengths' alignment flag depends on where this test's stack put them.
      if (i == 27 || i == 30)
        continue;
      EXPECT_EQ(slots[i], expected[i]) << "slot " << i << (packed ? " packed" : " dense");
    }
    EXPECT_NE(slots[39], 0u) << "status word";
    EXPECT_EQ(slots[40], 1u) << "status stride";
  }
}

TEST_F(CApi, ARunAllocatesAndLocksNothing) {
  for (nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED}) {
    Call call(layout);
    store(call, {.templateName = "lean", .params = kAllParams, .grid = "1 ; 1 ; 1"}, test::countingCode());
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
  store(call, {}, test::countingCode());
  Engine engine(cache);
  ASSERT_EQ(Plan(engine, call).status, NSA_OK);
  call.maxima.max_seqlen_k = 37; // of the same bucket, so of the same problem
  nsa_plan *plan = nullptr;
  nsa_error error;
  const size_t allocationsBefore = allocations, locksBefore = locks;
  const nsa_status status = nsa_plan_create(engine.handle, &call.spec, &call.maxima, nullptr, &plan, &error);
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
  store(call, {}, test::countingCode());
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
  store(dense, {}, test::countingCode());
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
  store(call, {.params = "param view k bf16 3\n", .grid = "1 ; 1 ; 1"}, test::countingCode());
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
    store(call, {}, test::countingCode());
    Engine engine(cache);
    Plan plan(engine, call);
    call.drop(dropped);
    std::copy(call.offsetsQ, call.offsetsQ + 3, call.offsetsK);
    EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  }
}

// One row: what is spoiled, and what the error must name.
struct Rule {
  const char *field;
  const char *value;
  const char *rule;
  std::function<void(Call &)> spoil;
};

void checkRules(CApi &test, Plan &plan, nsa_layout layout, const std::vector<Rule> &rules) {
  for (const Rule &rule : rules) {
    Call call(layout);
    rule.spoil(call);
    EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT) << rule.field << ": " << rule.rule;
    EXPECT_STREQ(plan.error.field, rule.field);
    EXPECT_NE(std::string(plan.error.value).find(rule.value), std::string::npos)
        << rule.field << ": " << plan.error.value;
    EXPECT_NE(std::string(plan.error.rule).find(rule.rule), std::string::npos) << rule.field << ": " << plan.error.rule;
    EXPECT_STRNE(plan.error.message, "");
    EXPECT_EQ(call.memory[3][0], 0) << "a refused call must not write";
  }
}

TEST_F(CApi, RulesOfDenseTensors) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, test::countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  checkRules(
      *this, plan, NSA_LAYOUT_DENSE,
      {
          {"q", "absent", "must be bound", [](Call &c) { c.drop(NSA_Q); }},
          {"k", "absent", "must be bound", [](Call &c) { c.drop(NSA_K); }},
          {"v", "absent", "must be bound", [](Call &c) { c.drop(NSA_V); }},
          {"out", "absent", "must be bound", [](Call &c) { c.drop(NSA_OUT); }},
          {"q", "bound twice", "once", [](Call &c) { c.bindings.push_back({NSA_Q, &c.tensors[NSA_Q]}); }},
          {"q", "null", "point to a tensor", [](Call &c) { c.bindings[0].tensor = nullptr; }},
          {"bindings.name", "77", "nsa_name", [](Call &c) { c.bindings[0].name = static_cast<nsa_name>(77); }},
          {"q.size", "8", "must be", [](Call &c) { c.tensors[NSA_Q].size = 8; }},
          {"q.dtype", "9", "nsa_dtype", [](Call &c) { c.tensors[NSA_Q].dtype = static_cast<nsa_dtype>(9); }},
          {"q.dtype", "fp16", "must be bf16", [](Call &c) { c.tensors[NSA_Q].dtype = NSA_FP16; }},
          {"k.dtype", "fp32", "must be bf16", [](Call &c) { c.tensors[NSA_K].dtype = NSA_FP32; }},
          {"out.dtype", "fp32", "must be bf16", [](Call &c) { c.tensors[NSA_OUT].dtype = NSA_FP32; }},
          {"lse.dtype", "bf16", "must be fp32", [](Call &c) { c.tensors[NSA_LSE].dtype = NSA_BF16; }},
          {"q.rank", "0", "1 to 5", [](Call &c) { c.tensors[NSA_Q].rank = 0; }},
          {"q.rank", "6", "1 to 5", [](Call &c) { c.tensors[NSA_Q].rank = 6; }},
          {"q.rank", "3", "must be 4", [](Call &c) { c.tensors[NSA_Q].rank = 3; }},
          {"k.rank", "1", "must be 4", [](Call &c) { c.tensors[NSA_K].rank = 1; }},
          {"lse.rank", "4", "must be 3", [](Call &c) { c.tensors[NSA_LSE].rank = 4; }},
          {"q.shape", "[2, 16, 3, 8]", "query_heads", [](Call &c) { c.tensors[NSA_Q].shape[2] = 3; }},
          {"q.shape", "[2, 16, 4, 9]", "qk_dim", [](Call &c) { c.tensors[NSA_Q].shape[3] = 9; }},
          {"q.shape", "-1", "2^31", [](Call &c) { c.tensors[NSA_Q].shape[1] = -1; }},
          {"q.shape", "4611686018427387904", "2^31", [](Call &c) { c.tensors[NSA_Q].shape[1] = int64_t{1} << 62; }},
          {"k.shape", "[1, 32, 2, 8]", "batch of q", [](Call &c) { c.tensors[NSA_K].shape[0] = 1; }},
          {"k.shape", "[2, 32, 4, 8]", "kv_heads", [](Call &c) { c.tensors[NSA_K].shape[2] = 4; }},
          {"v.shape", "[2, 31, 2, 16]", "as k", [](Call &c) { c.tensors[NSA_V].shape[1] = 31; }},
          {"v.shape", "[2, 32, 2, 8]", "v_dim", [](Call &c) { c.tensors[NSA_V].shape[3] = 8; }},
          {"out.shape", "[2, 15, 4, 16]", "as q", [](Call &c) { c.tensors[NSA_OUT].shape[1] = 15; }},
          {"out.shape", "[2, 16, 4, 8]", "v_dim", [](Call &c) { c.tensors[NSA_OUT].shape[3] = 8; }},
          {"lse.shape", "[2, 17, 4]", "as q", [](Call &c) { c.tensors[NSA_LSE].shape[1] = 17; }},
          {"lse.shape", "[2, 16, 2]", "query_heads", [](Call &c) { c.tensors[NSA_LSE].shape[2] = 2; }},
          {"lse.shape", "[1, 16, 4]", "batch of q", [](Call &c) { c.tensors[NSA_LSE].shape[0] = 1; }},
          {"q.strides", "2", "contiguous", [](Call &c) { c.tensors[NSA_Q].strides[3] = 2; }},
          {"out.strides", "3", "contiguous", [](Call &c) { c.tensors[NSA_OUT].strides[3] = 3; }},
          {"k.strides", "-16", "negative", [](Call &c) { c.tensors[NSA_K].strides[1] = -16; }},
          {"k.strides", "4611686018427387904", "63 bits",
           [](Call &c) { c.tensors[NSA_K].strides[0] = int64_t{1} << 62; }},
          {"out.strides", "0", "share memory", [](Call &c) { c.tensors[NSA_OUT].strides[1] = 0; }},
          {"lse.strides", "0", "share memory", [](Call &c) { c.tensors[NSA_LSE].strides[2] = 0; }},
          {"q.data", "null", "must point to", [](Call &c) { c.tensors[NSA_Q].data = nullptr; }},
          {"lse.data", "null", "must point to", [](Call &c) { c.tensors[NSA_LSE].data = nullptr; }},
          {"v.data", "", "multiple of the element",
           [](Call &c) { c.tensors[NSA_V].data = reinterpret_cast<char *>(c.memory[2]) + 1; }},
          {"batch", "3", "max_batch = 2",
           [](Call &c) {
             for (nsa_name name : {NSA_Q, NSA_K, NSA_V, NSA_OUT, NSA_LSE})
               c.tensors[name].shape[0] = 3;
           }},
          {"seqlen_q", "21", "max_seqlen_q = 20",
           [](Call &c) {
             for (nsa_name name : {NSA_Q, NSA_OUT, NSA_LSE})
               c.tensors[name].shape[1] = 21;
           }},
          {"seqlen_k", "41", "max_seqlen_k = 40",
           [](Call &c) {
             for (nsa_name name : {NSA_K, NSA_V})
               c.tensors[name].shape[1] = 41;
           }},
          {"seqlen_q", "16", "at most seqlen_k = 15",
           [](Call &c) {
             for (nsa_name name : {NSA_K, NSA_V})
               c.tensors[name].shape[1] = 15;
           }},
          {"cu_seqlens_q", "bound", "packed layout",
           [](Call &c) { c.set(NSA_CU_SEQLENS_Q, c.offsetsQ, NSA_INT32, {3}); }},
          {"gates", "bound", "no tensor of operator window",
           [](Call &c) { c.set(NSA_GATES, c.offsetsQ, NSA_INT32, {3}); }},
      });

  EXPECT_EQ(nsa_run(plan.handle, nullptr, 2, nullptr, 0, nullptr, &plan.error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "bindings");
  EXPECT_EQ(nsa_run(plan.handle, call.bindings.data(), call.bindings.size(), nullptr, 0, nullptr, &plan.error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "workspace_bytes");
  EXPECT_EQ(nsa_run(plan.handle, call.bindings.data(), call.bindings.size(), static_cast<char *>(plan.workspace) + 8,
                    64, nullptr, &plan.error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "workspace");
}

TEST_F(CApi, RulesOfPackedTensors) {
  Call call(NSA_LAYOUT_PACKED);
  store(call, {}, test::countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  checkRules(
      *this, plan, NSA_LAYOUT_PACKED,
      {
          {"cu_seqlens_q", "absent", "packed layout needs",
           [](Call &c) { c.drop(NSA_CU_SEQLENS_Q), c.drop(NSA_CU_SEQLENS_K); }},
          {"cu_seqlens_q.dtype", "fp32", "must be int32",
           [](Call &c) { c.tensors[NSA_CU_SEQLENS_Q].dtype = NSA_FP32; }},
          {"cu_seqlens_k.rank", "2", "must be 1", [](Call &c) { c.tensors[NSA_CU_SEQLENS_K].rank = 2; }},
          {"cu_seqlens_q.shape", "[0]", "batch + 1", [](Call &c) { c.tensors[NSA_CU_SEQLENS_Q].shape[0] = 0; }},
          {"cu_seqlens_k.shape", "[2]", "batch + 1", [](Call &c) { c.tensors[NSA_CU_SEQLENS_K].shape[0] = 2; }},
          {"cu_seqlens_q.data", "null", "must point to", [](Call &c) { c.tensors[NSA_CU_SEQLENS_Q].data = nullptr; }},
          {"q.rank", "4", "must be 3", [](Call &c) { c.tensors[NSA_Q].rank = 4; }},
          {"out.shape", "[15, 4, 16]", "as q", [](Call &c) { c.tensors[NSA_OUT].shape[0] = 15; }},
          {"v.shape", "[33, 2, 16]", "as k", [](Call &c) { c.tensors[NSA_V].shape[0] = 33; }},
          {"tokens_q", "41", "max_tokens_q = 40",
           [](Call &c) {
             for (nsa_name name : {NSA_Q, NSA_OUT, NSA_LSE})
               c.tensors[name].shape[0] = 41;
           }},
          {"batch", "3", "max_batch = 2",
           [](Call &c) {
             static int32_t four[4] = {};
             for (nsa_name name : {NSA_CU_SEQLENS_Q, NSA_CU_SEQLENS_K})
               c.set(name, four, NSA_INT32, {4});
           }},
          // Contents: the CPU reads them on the host and names the place.
          {"cu_seqlens_q[0]", "1", "must be 0", [](Call &c) { c.offsetsQ[0] = 1; }},
          {"cu_seqlens_q[2]", "4", "less than the one before, 5", [](Call &c) { c.offsetsQ[2] = 4; }},
          {"cu_seqlens_q[2]", "17", "rows of q = 16", [](Call &c) { c.offsetsQ[2] = 17; }},
          {"cu_seqlens_k[1]", "-9", "less than the one before", [](Call &c) { c.offsetsK[1] = -9; }},
          {"cu_seqlens_k[2]", "33", "rows of k = 32", [](Call &c) { c.offsetsK[2] = 33; }},
          {"seqlen_q of sequence 0", "5", "its seqlen_k = 4", [](Call &c) { c.offsetsK[1] = 4; }},
      });
}

TEST_F(CApi, LengthsBeyondTheMaximaAreNamedWithTheirSequence) {
  Call call(NSA_LAYOUT_PACKED);
  call.maxima.max_seqlen_q = 10;
  call.maxima.max_seqlen_k = 22;
  store(call, {}, test::countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "seqlen_q of sequence 1");
  EXPECT_STREQ(plan.error.value, "11");
  call.offsetsQ[1] = 7;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "seqlen_k of sequence 1");
  EXPECT_STREQ(plan.error.value, "23");
  call.offsetsK[1] = 10;
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
}

TEST_F(CApi, RulesOfSpecAndMaxima) {
  Engine engine(cache);
  const struct {
    const char *field;
    const char *value;
    std::function<void(Call &)> spoil;
  } rows[] = {
      {"spec.size", "3", [](Call &c) { c.spec.size = 3; }},
      {"spec.reserved", "1", [](Call &c) { c.spec.reserved[7] = 1; }},
      {"op", "8", [](Call &c) { c.spec.op = NSA_OP_DECODE; }},
      {"op", "9", [](Call &c) { c.spec.op = static_cast<nsa_op>(9); }},
      {"gate_per_group", "2", [](Call &c) { c.spec.gate_per_group = 2; }},
      {"dtype", "int32", [](Call &c) { c.spec.dtype = NSA_INT32; }},
      {"dtype", "-1", [](Call &c) { c.spec.dtype = static_cast<nsa_dtype>(-1); }},
      {"layout", "2", [](Call &c) { c.spec.layout = static_cast<nsa_layout>(2); }},
      {"query_heads", "0", [](Call &c) { c.spec.query_heads = 0; }},
      {"query_heads", "5", [](Call &c) { c.spec.query_heads = 5; }},
      {"query_heads", "258", [](Call &c) { c.spec.query_heads = 258; }},
      {"kv_heads", "-2", [](Call &c) { c.spec.kv_heads = -2; }},
      {"qk_dim", "0", [](Call &c) { c.spec.qk_dim = 0; }},
      {"v_dim", "0", [](Call &c) { c.spec.v_dim = 0; }},
      {"window", "0", [](Call &c) { c.spec.window = 0; }},
      {"scale", "nan", [](Call &c) { c.spec.scale = std::numeric_limits<float>::quiet_NaN(); }},
      {"scale", "-1", [](Call &c) { c.spec.scale = -1; }},
      {"scale", "inf", [](Call &c) { c.spec.scale = std::numeric_limits<float>::infinity(); }},
      {"maxima.size", "0", [](Call &c) { c.maxima.size = 0; }},
      {"maxima.reserved", "5", [](Call &c) { c.maxima.reserved[0] = 5; }},
      {"max_batch", "0", [](Call &c) { c.maxima.max_batch = 0; }},
      {"max_tokens_q", "-1", [](Call &c) { c.maxima.max_tokens_q = -1; }},
      {"max_seqlen_q", "-1", [](Call &c) { c.maxima.max_seqlen_q = -1; }},
      {"max_seqlen_k", "2147483648", [](Call &c) { c.maxima.max_seqlen_k = int64_t{1} << 31; }},
  };
  for (const auto &row : rows) {
    Call call(NSA_LAYOUT_DENSE);
    row.spoil(call);
    Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_INVALID_ARGUMENT) << row.field << " = " << row.value;
    EXPECT_EQ(plan.handle, nullptr);
    EXPECT_STREQ(plan.error.field, row.field);
    EXPECT_NE(std::string(plan.error.value).find(row.value), std::string::npos)
        << row.field << ": " << plan.error.value;
    EXPECT_STRNE(plan.error.rule, "");
  }
  EXPECT_EQ(engine.stats().plans_failed, 17u) << "requests that were readable but wrong";
}

TEST_F(CApi, RulesOfOptions) {
  const struct {
    const char *field;
    std::function<void(nsa_engine_options &)> spoil;
  } rows[] = {
      {"options.size", [](nsa_engine_options &o) { o.size = 1; }},
      {"options.reserved", [](nsa_engine_options &o) { o.reserved[3] = -1; }},
      {"device", [](nsa_engine_options &o) { o.device = "tpu"; }},
      {"device", [](nsa_engine_options &o) { o.device = "cuda:"; }},
      {"device", [](nsa_engine_options &o) { o.device = "cuda:-1"; }},
      {"miss_policy_set", [](nsa_engine_options &o) { o.miss_policy_set = 2; }},
      {"miss_policy", [](nsa_engine_options &o) { o.miss_policy = static_cast<nsa_miss_policy>(3); }},
      {"log_level", [](nsa_engine_options &o) { o.log_level = static_cast<nsa_log_level>(9); }},
      {"tune_budget_seconds", [](nsa_engine_options &o) { o.tune_budget_seconds = -1; }},
      {"cpu_threads", [](nsa_engine_options &o) { o.cpu_threads = -1; }},
      {"cpu_features", [](nsa_engine_options &o) { o.cpu_features = "sse2"; }},
      {"template_dir", [](nsa_engine_options &o) { o.template_dir = "/no/such/folder"; }},
  };
  for (const auto &row : rows) {
    Engine engine(cache, row.spoil);
    EXPECT_EQ(engine.status, NSA_INVALID_ARGUMENT) << row.field;
    EXPECT_EQ(engine.handle, nullptr);
    EXPECT_STREQ(engine.error.field, row.field);
    EXPECT_STRNE(engine.error.rule, "");
  }
}

TEST_F(CApi, NullPointersAreNamed) {
  Engine engine(cache);
  Call call(NSA_LAYOUT_DENSE);
  nsa_error error;
  nsa_plan *plan = nullptr;
  char *json = nullptr;
  size_t bytes = 0;
  nsa_stats stats = NSA_INIT(nsa_stats);
  EXPECT_EQ(nsa_engine_create(nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_plan_create(nullptr, &call.spec, &call.maxima, nullptr, &plan, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_plan_create(engine.handle, nullptr, &call.maxima, nullptr, &plan, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "spec");
  EXPECT_EQ(nsa_plan_create(engine.handle, &call.spec, nullptr, nullptr, &plan, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "maxima");
  EXPECT_EQ(nsa_plan_create(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "plan");
  EXPECT_EQ(nsa_run(nullptr, nullptr, 0, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_plan_workspace_size(nullptr, &bytes, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_plan_status(nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_explain(engine.handle, &call.spec, &call.maxima, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_tune(nullptr, &call.spec, &call.maxima, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_engine_describe(nullptr, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_engine_stats(nullptr, &stats, &error), NSA_INVALID_ARGUMENT);
  stats.size = 1;
  EXPECT_EQ(nsa_engine_stats(engine.handle, &stats, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_engine_create(nullptr, nullptr, nullptr), NSA_INVALID_ARGUMENT) << "the error may be null";
  EXPECT_STREQ(nsa_plan_describe(nullptr), "");
  nsa_engine_destroy(nullptr);
  nsa_plan_destroy(nullptr);
  nsa_free(nullptr);
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
  store(call, {}, test::countingCode());
  auto engine = std::make_unique<Engine>(cache);
  Plan plan(*engine, call);
  engine.reset();
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
}

// Whoever is last, a plan of any thread or the handle, takes the engine along: the address sanitizer sees what is left.
TEST_F(CApi, PlansOfManyThreadsOutliveTheirEngine) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, test::countingCode());
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
    store(prototype, {.scratchBytes = 256}, test::countingCode());
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
