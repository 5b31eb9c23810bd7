// What tests of the C ABI share: a call of which a test spoils exactly one piece, an engine, a plan. No compiler takes
// part: kernels are assembled by hand and put into a store.
// Thread-safety: each object belongs to one thread, but plans may be made of one engine by many.
#pragma once

#include "runtime/include/nsa/nsa.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace nsa::test::c_api {

// What every call has. A test spoils exactly one piece of it.
struct AnyCall {
  nsa_spec spec = NSA_INIT(nsa_spec);
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  nsa_tensor tensors[NSA_NAMES];
  std::vector<nsa_binding> bindings;

  AnyCall() = default;
  AnyCall(const AnyCall &) = delete;

  void set(nsa_name name, void *data, nsa_dtype dtype, const std::vector<int64_t> &shape) {
    drop(name);
    bindings.push_back(
        {name, nsa_tensor_rows(&tensors[name], data, dtype, static_cast<int32_t>(shape.size()), shape.data())});
  }
  void drop(nsa_name name) {
    std::erase_if(bindings, [&](const nsa_binding &binding) { return binding.name == name; });
  }

  // Gates and weights are as by default.
  Spec internalSpec() const {
    Spec result;
    result.op = findPublicOperator(spec.op)->op;
    result.dtype = static_cast<DType>(spec.dtype);
    result.layout = static_cast<Layout>(spec.layout);
    result.queryHeads = spec.query_heads;
    result.kvHeads = spec.kv_heads;
    result.qkDim = spec.qk_dim;
    result.vDim = spec.v_dim;
    result.window = spec.window;
    result.cmpBlock = spec.cmp_block;
    result.cmpStride = spec.cmp_stride;
    result.selBlock = spec.sel_block;
    result.selCount = spec.sel_count;
    result.initBlocks = spec.init_blocks;
    result.localBlocks = spec.local_blocks;
    result.branches = spec.branches;
    result.pageSize = spec.page_size;
    result.keyOffset = spec.key_offset != 0;
    result.makeIndex = spec.make_index != 0;
    result.batchInvariant = spec.batch_invariant != 0;
    return result;
  }
  Maxima internalMaxima() const {
    return {maxima.max_batch, maxima.max_tokens_q, maxima.max_seqlen_q, maxima.max_seqlen_k};
  }
};

// A call of `window` with all its pieces in reach.
struct Call : AnyCall {
  alignas(16) uint16_t memory[4][4096] = {}; // q, k, v, out
  float lseMemory[1024] = {};
  int32_t offsetsQ[3] = {0, 5, 16};
  int32_t offsetsK[3] = {0, 9, 32};

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
};

struct Engine {
  nsa_engine *handle = nullptr;
  nsa_error error = {};
  nsa_status status;
  std::vector<std::string> log;

  explicit Engine(const std::string &cache, const std::function<void(nsa_engine_options &)> &change = {}) {
    nsa_engine_options options = storedKernelOptions("cpu", cache);
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
    EXPECT_EQ(nsa_engine_get_stats(handle, &result, nullptr), NSA_OK);
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

  Plan(Engine &engine, const AnyCall &call) {
    status = nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &handle, &error);
    if (status != NSA_OK)
      return;
    EXPECT_EQ(nsa_plan_workspace_size(handle, &workspaceBytes, nullptr), NSA_OK);
    memory.resize(workspaceBytes + 256);
    workspace = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory.data()) + 255) & ~uintptr_t{255});
  }
  ~Plan() { nsa_plan_destroy(handle); }
  Plan(const Plan &) = delete;

  nsa_status run(const AnyCall &call) {
    return nsa_run(handle, call.bindings.data(), call.bindings.size(), workspace, workspaceBytes, nullptr, &error);
  }
};

// The last failure of this thread, whole.
inline nsa_error_info lastFailure() {
  nsa_error_info info = NSA_INIT(nsa_error_info);
  EXPECT_EQ(nsa_error_get_info(&info, nullptr), NSA_OK);
  return info;
}

class CApi : public testing::Test {
protected:
  void store(const AnyCall &call, const KernelText &text, std::vector<std::byte> code) {
    storeKernel(cache, call.internalSpec(), call.internalMaxima(), text, std::move(code));
  }

  Scratch folder;
  std::string cache = folder.file("kernels.db");
};

} // namespace nsa::test::c_api
