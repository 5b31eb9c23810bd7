// One compiled variant of the kernel decode_step, and what a test hands to it.
#pragma once

#include "emulator.h"

#include <cstdint>

namespace emulation {

// A tensor in the form in which kernels get it: strides in elements, and for tensors in pages the table.
struct Tensor {
  void *data = nullptr;
  int64_t strides[4] = {};
  int elementBytes = 2;
  const int32_t *table = nullptr;
  int64_t tableStride = 0;
};

// The arguments of a call, by their names in the template.
struct StepArguments {
  Tensor q, q_cmp, k_sel_cache, v_sel_cache, k_win_cache, v_win_cache, k_comp, v_comp, gates, out, reads;
  Tensor o_cmp, o_sel, o_win, lse_cmp, lse_sel, lse_win, block_list;
  Tensor cu_seqlens_q, cache_seqlens, block_table, k_sel, v_sel, k_win, v_win, k_cmp, v_cmp, k_raw, v_raw;
  Tensor arrivals, status;
  Tensor pe_k, pe_v, w_k, w_v, b_k, b_v, w1_k, w1_v, b1_k, b1_v, w2_k, w2_v, b2_k, b2_v;
  int kv_heads = 1, window = 1, init_blocks = 1, local_blocks = 2;
  float scale_log2 = 1;
  int capacity = 0, pages = 0, max_seqlen_q = 1, max_seqlen_k = 0, total_q = 0, seqlen_q = 1;
};

enum class Gate { kValue, kSigmoid, kSoftmax };
enum class Compression { kMean, kLinear, kMlp };
enum class Activation { kRelu, kGelu, kSilu };

// What is compiled into a variant.
struct StepProblem {
  bool isBf16;
  int qkDim, vDim, group, pageSize, cmpBlock, cmpStride, selBlock, selCount;
  Compression compression;
  Activation activation;
  int mlpHidden;
  Gate gate;
  bool gatePerGroup, hasCmp, hasSel, hasWin;
  int room, cluster;
  int threads;
  size_t sharedBytes;
};

struct StepVariant {
  StepProblem problem;
  void (*run)(const StepArguments &arguments, int batch, uint64_t seed, int clustersAtOnce);
};

} // namespace emulation
