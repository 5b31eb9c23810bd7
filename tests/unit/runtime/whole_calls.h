// Calls of the operators that are several kernels, with all their pieces in reach, for tests of the C ABI.
// Thread-safety: each object belongs to one thread.
#pragma once

#include "tests/unit/runtime/c_api_fixture.h"

#include <cstddef>
#include <initializer_list>

namespace nsa::test::c_api {

inline constexpr int64_t kBatch = 2, kNew = 4, kRoom = 48, kPageSize = 16, kPoolPages = 7;

// What both calls compute: 4/2 heads of 8 and 16, in blocks of which there are more than are selected.
inline void setSmall(nsa_spec &spec, nsa_op op, nsa_layout layout, int32_t branches) {
  spec.op = op;
  spec.layout = layout;
  spec.query_heads = 4;
  spec.kv_heads = 2;
  spec.qk_dim = 8;
  spec.v_dim = 16;
  spec.window = 7;
  spec.cmp_block = 8;
  spec.cmp_stride = 4;
  spec.sel_block = 8;
  spec.sel_count = 4;
  spec.init_blocks = 1;
  spec.local_blocks = 2;
  spec.branches = branches;
}

// Two sequences of up to 40 tokens, in a cache that has room for 48 of each.
struct DecodeCall : AnyCall {
  alignas(16) uint16_t memory[8192] = {};
  int32_t lengths[kBatch] = {5, 33};
  int32_t offsets[kBatch + 1] = {0, 1, 4};
  // Pages are named as their tokens come.
  int32_t table[kBatch * kRoom / kPageSize] = {4, 99, -1, 3, 5, 2};

  explicit DecodeCall(nsa_layout layout, int32_t pageSize, int32_t branches = NSA_BRANCHES_ALL) {
    setSmall(spec, NSA_OP_DECODE, layout, branches);
    spec.page_size = pageSize;
    maxima.max_batch = kBatch;
    maxima.max_tokens_q = kBatch * kNew;
    maxima.max_seqlen_q = kNew;
    maxima.max_seqlen_k = 40;
    const bool compresses = branches & (NSA_BRANCH_CMP | NSA_BRANCH_SEL);
    setNew(NSA_Q, 4, 8);
    setNew(NSA_GATES, 4, 3);
    setNew(NSA_OUT, 4, 16);
    if (compresses) {
      setNew(NSA_K_CMP, 2, 8);
      setNew(NSA_V_CMP, 2, 16);
      setBlocks(NSA_K_COMP_CACHE, 8);
      setBlocks(NSA_V_COMP_CACHE, 16);
      set(NSA_K_RAW, memory, NSA_BF16, {kBatch, 8, 2, 8});
      set(NSA_V_RAW, memory, NSA_BF16, {kBatch, 8, 2, 16});
    }
    if (branches & NSA_BRANCH_SEL)
      setBranch(NSA_K_SEL, NSA_V_SEL, NSA_K_SEL_CACHE, NSA_V_SEL_CACHE);
    if (branches & NSA_BRANCH_WIN)
      setBranch(NSA_K_WIN, NSA_V_WIN, NSA_K_WIN_CACHE, NSA_V_WIN_CACHE);
    set(NSA_CACHE_SEQLENS, lengths, NSA_INT32, {kBatch});
    if (layout == NSA_LAYOUT_PACKED)
      set(NSA_CU_SEQLENS_Q, offsets, NSA_INT32, {kBatch + 1});
    if (pageSize)
      setTable();
  }

  void setTable() { set(NSA_BLOCK_TABLE, table, NSA_INT32, {kBatch, kRoom / kPageSize}); }
  // New tokens, as many of all kinds.
  void setNew(nsa_name name, int64_t heads, int64_t columns) {
    if (spec.layout == NSA_LAYOUT_PACKED)
      set(name, memory, NSA_BF16, {kNew, heads, columns});
    else
      set(name, memory, NSA_BF16, {kBatch, kNew, heads, columns});
  }
  // Each pool in memory of its own: where they start is all that a call looks at.
  void setPool(nsa_name name, int64_t columns) {
    if (spec.page_size)
      set(name, memory + std::ptrdiff_t{8} * (1 + name), NSA_BF16, {kPoolPages, kPageSize, 2, columns});
    else
      set(name, memory + std::ptrdiff_t{8} * (1 + name), NSA_BF16, {kBatch, kRoom, 2, columns});
  }
  void setBlocks(nsa_name name, int64_t columns) {
    if (spec.page_size)
      set(name, memory, NSA_BF16, {kPoolPages, kPageSize / 4, 2, columns});
    else
      set(name, memory, NSA_BF16, {kBatch, 11, 2, columns});
  }
  void setBranch(nsa_name k, nsa_name v, nsa_name kCache, nsa_name vCache) {
    setNew(k, 2, 8);
    setNew(v, 2, 16);
    setPool(kCache, 8);
    setPool(vCache, 16);
  }
  // Of one dimension of several tensors.
  void setExtent(std::initializer_list<nsa_name> names, int axis, int64_t extent) {
    for (nsa_name name : names)
      tensors[name].shape[axis] = extent;
  }
};

// The whole forward over two sequences of 40 tokens, of which the last 24 are queries. No branch covers every key.
struct ForwardCall : AnyCall {
  alignas(16) uint16_t memory[8192] = {};
  int32_t offsetsQ[3] = {0, 24, 48}, offsetsK[3] = {0, 40, 80};

  explicit ForwardCall(nsa_layout layout) {
    setSmall(spec, NSA_OP_NSA, layout, NSA_BRANCHES_ALL);
    maxima.max_batch = 2;
    maxima.max_tokens_q = 48;
    maxima.max_seqlen_q = 24;
    maxima.max_seqlen_k = 40;
    setRows(NSA_Q, 24, 4, 8);
    setRows(NSA_K, 40, 2, 8);
    setRows(NSA_V, 40, 2, 16);
    setRows(NSA_GATES, 24, 4, 3);
    setRows(NSA_OUT, 24, 4, 16);
    if (layout == NSA_LAYOUT_PACKED) {
      set(NSA_CU_SEQLENS_Q, offsetsQ, NSA_INT32, {3});
      set(NSA_CU_SEQLENS_K, offsetsK, NSA_INT32, {3});
    }
  }
  void setRows(nsa_name name, int64_t tokens, int64_t heads, int64_t columns) {
    if (spec.layout == NSA_LAYOUT_PACKED)
      set(name, memory, NSA_BF16, {2 * tokens, heads, columns});
    else
      set(name, memory, NSA_BF16, {2, tokens, heads, columns});
  }
};

} // namespace nsa::test::c_api
