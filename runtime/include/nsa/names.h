/* The tensors that the operators take: their names, shapes and element types. nsa/nsa.h includes this file. */
#ifndef NSA_NAMES_H
#define NSA_NAMES_H

/* clang-format off */
/* The names of the tensors that each operator takes. In a shape, `..` is [batch, time] in the dense layout and [total]
 * in the packed layout. In the packed layout every operator but combine and combine_bwd also takes CU_SEQLENS_Q
 * and CU_SEQLENS_K. If only one of them is bound, its lengths are used for both queries and keys.
 * "A else B" means that the operator reads B if A is not bound, so that all branches may read the same K and V.
 * Brackets mark tensors that a call may leave out.
 *
 *   dense, window  Q, K_WIN else K, V_WIN else V, [K_OFFSET] -> OUT, [LSE], [READS]
 *   compress       K_CMP else K, V_CMP else V, weights      -> K_COMP, V_COMP
 *   cmp            Q_CMP else Q, K_COMP, V_COMP, [K_OFFSET] -> OUT, [LSE], [READS]
 *   select         Q_CMP else Q, K_COMP, [LSE of cmp]       -> BLOCK_LIST, [BLOCK_INDEX]
 *   invert         BLOCK_LIST                              -> BLOCK_INDEX
 *   sel            Q, K_SEL else K, V_SEL else V, BLOCK_LIST -> OUT, [LSE], [READS]
 *   combine        O_CMP, O_SEL, O_WIN (of the branches that are on), GATES -> OUT
 *   nsa            Q, Q_CMP else Q, K_* else K, V_* else V, weights, GATES
 *                  -> OUT, [O_*], [LSE_*], [BLOCK_LIST], [BLOCK_INDEX], [K_COMP], [V_COMP], [READS]
 *   decode         the inputs of nsa, for the new tokens alone; CACHE_SEQLENS, [BLOCK_TABLE], K_SEL_CACHE else K_CACHE,
 *                  K_WIN_CACHE else K_CACHE, the same for V_*, K_COMP_CACHE, V_COMP_CACHE, K_RAW, V_RAW. The call reads
 *                  and writes all tensors of the cache except BLOCK_TABLE, which the call only reads.
 *                  -> OUT, [O_*], [LSE_*], [BLOCK_LIST], [READS]
 *   rotate, rotate_bwd  X, [COS and SIN]                    -> OUT
 *   combine_bwd    O_CMP, O_SEL, O_WIN (of the branches that are on), GATES, D_OUT -> D_GATES, [D_O_*]
 *   dense_bwd, window_bwd  Q, K_WIN else K, V_WIN else V, OUT, LSE, D_OUT
 *                  -> D_Q, D_K_WIN or D_K, D_V_WIN or D_V, [DELTA]
 *   cmp_bwd        Q_CMP else Q, K_COMP, V_COMP, OUT, LSE, D_OUT -> D_Q_CMP or D_Q, D_K_COMP, D_V_COMP, [DELTA]
 *   compress_bwd   K_CMP else K, V_CMP else V, weights, D_K_COMP, D_V_COMP
 *                  -> D_K_CMP or D_K, D_V_CMP or D_V, [D_ and the name of each weight that the call reads]
 *   sel_bwd        Q, K_SEL else K, V_SEL else V, BLOCK_LIST, [BLOCK_INDEX], OUT, LSE, D_OUT
 *                  -> D_Q, D_K_SEL or D_K, D_V_SEL or D_V, [DELTA]
 *   nsa_bwd        Q, Q_CMP else Q, K_* else K, V_* else V, weights, GATES, LSE_CMP, LSE_SEL, LSE_WIN, BLOCK_LIST,
 *                  [BLOCK_INDEX], [O_CMP], [O_SEL], [O_WIN], [K_COMP and V_COMP], D_OUT
 *                  -> D_Q, D_Q_CMP or D_Q, D_K_* or D_K, D_V_* or D_V, D_GATES,
 *                     [D_ and the name of each weight that the call reads]
 *
 * D_X is the gradient of X, and has the shape of X. A call binds D_K_WIN if it reads K_WIN, and D_K if it reads K, and so
 * for the others. The gradients read OUT and LSE as the forward pass wrote them. Sums are fp32, and each gradient is rounded
 * once. A gradient that a call writes, and OUT of rotate_bwd, is of the io type or of fp32, as its tensor says, and
 * replaces what the tensor holds or is added to that (`accumulate` of nsa_tensor). D_OUT and D_O_* are of the io type,
 * and D_O_* replace what their tensors hold. The gradients of keys and values that no query attends are 0, and so are
 * the gradients of tokens that no compressed block covers. A call of nsa_bwd may also bind gradients of tensors that
 * none of its branches reads, such as D_K_CMP if cmp is off, and they become 0.
 *
 * Shapes
 *   Q, Q_CMP                   [.., query_heads, qk_dim]
 *   K, K_CMP, K_SEL, K_WIN     [.., kv_heads, qk_dim]
 *   V, V_CMP, V_SEL, V_WIN     [.., kv_heads, v_dim]
 *   CU_SEQLENS_Q, CU_SEQLENS_K int32 [batch + 1]: where each sequence begins, and the total
 *   OUT                        [.., query_heads, v_dim]; of rotate and rotate_bwd the shape of X
 *   O_CMP, O_SEL, O_WIN        [.., query_heads, v_dim]
 *   X                          [.., kv_heads, qk_dim]
 *   COS, SIN                   fp32 [at least max_seqlen_k, rotary_dims / 2], or absent: computed in fp64
 *   LSE                        fp32 [.., query_heads]
 *   D_OUT, D_GATES, D_O_CMP, D_O_SEL, D_O_WIN, D_Q, D_K, D_V, D_K_WIN, D_V_WIN, D_K_CMP, D_V_CMP, D_Q_CMP
 *                              the shape of the tensor whose gradient it is, and so the next two rows
 *   D_K_SEL, D_V_SEL, D_K_COMP, D_V_COMP, D_PE_K, D_PE_V, D_W_K, D_W_V, D_B_K, D_B_V
 *   D_W1_K, D_W1_V, D_B1_K, D_B1_V, D_W2_K, D_W2_V, D_B2_K, D_B2_V
 *   DELTA                      fp32 [.., query_heads]: the sum over v_dim of D_OUT times OUT
 *   LSE_CMP, LSE_SEL, LSE_WIN  fp32 [.., query_heads]
 *   K_OFFSET                   int32 [batch]: the position of each sequence's first key, from -2^30 to 2^30; bound if
 *                              and only if the spec has key_offset. For cmp a multiple of cmp_stride. Query i stands at
 *                              position seqlen_k - seqlen_q + i.
 *   BLOCK_LIST                 int32 [.., kv_heads, sel_count]: ascending numbers of the sequence's blocks; -1 fills
 *                              the end
 *   BLOCK_INDEX                int32 [batch, kv_heads, at least ceil(T / sel_block) + 1 + T_q * sel_count]; packed
 *                              [kv_heads, at least floor(total_k / sel_block) + 2 * batch + total_q * sel_count]: which
 *                              queries list each block. Offsets of the blocks' queries, one more than there are blocks,
 *                              and then the queries. In the packed layout the part of sequence b begins at
 *                              floor(CU_SEQLENS_K[b] / sel_block) + 2 * b + CU_SEQLENS_Q[b] * sel_count. A sequence
 *                              without keys has no part. What follows the last query of a part is not written.
 *                              select and nsa make it if the spec has make_index, of the BLOCK_LIST that the call binds
 *   GATES                      [.., heads, 3] in the order cmp, sel, win
 *   READS                      int32 [.., kv_heads]: how many tokens and compressed blocks the query's group attended
 *   K_COMP, V_COMP             [.., kv_heads, dim] with a row for each compressed block in the place of time
 * A sequence of T tokens has N_c(T) = T < cmp_block ? 0 : (T - cmp_block) / cmp_stride + 1 compressed blocks. In the
 * packed layout the blocks of the sequences follow each other without gaps, and the tensors may have more rows than
 * blocks. Only in the packed layout may a sequence of cmp, cmp_bwd, select, invert, rotate and rotate_bwd have more
 * tokens than queries.
 *
 * The cache of decode. Each call of decode brings T_q = T >= 1 new tokens of each sequence: a prompt, a chunk of a
 * prompt or a single token. In the packed layout CU_SEQLENS_Q gives the number of new tokens for each sequence, which
 * may be 0. A call of decode appends the new tokens to the cache, compresses the blocks that become complete, adds the
 * number of new tokens to CACHE_SEQLENS, and then computes for the new queries what nsa computes. The lengths of the
 * cache are in device memory alone, so a CUDA graph that captured one call computes every later step of decoding.
 *   CACHE_SEQLENS              int32 [batch]: tokens in the cache, 0 at first
 *   K_CACHE, K_SEL_CACHE, K_WIN_CACHE, V_CACHE, V_SEL_CACHE, V_WIN_CACHE
 *                              [batch, room, kv_heads, dim], with a page_size [pages, page_size, kv_heads, dim]
 *   K_COMP_CACHE, V_COMP_CACHE [batch, at least N_c(room), kv_heads, dim],
 *                              with a page_size [pages, page_size / cmp_stride, kv_heads, dim]
 *   BLOCK_TABLE                int32 [batch, pages of a sequence]: entry i is the page of the sequence's tokens from
 *                              i * page_size on, and of the compressed blocks that begin there
 *   K_RAW, V_RAW               [batch, cmp_block, kv_heads, dim]: the last tokens that are to be compressed; token t is
 *                              in row t mod cmp_block
 * In these shapes, `room` is the number of tokens that the cache can hold for each sequence. Entries of BLOCK_TABLE for
 * pages after the last token of a sequence are not read. Memory of the cache that was never written is never read. If
 * sel and win read the same K_CACHE or V_CACHE, their new keys or values must be the same tensor. If the cache is too
 * small for the new tokens of a sequence, the sequence does not change, and an error is returned: by nsa_run on the
 * CPU, by nsa_plan_status on a GPU.
 *
 * Weights have the dtype of the spec, and all heads use the same weights. Weights of keys (_K) have D = qk_dim, weights
 * of values (_V) have D = v_dim. The cmp_kind linear needs W_K and W_V. The cmp_kind mlp needs W1_K, W1_V, W2_K and
 * W2_V. A call may leave out all other weights.
 *   PE_K, PE_V                 linear and mlp: [cmp_block, D]
 *   W_K, W_V                   linear: [cmp_block, D, D]
 *   B_K, B_V                   linear: [D]
 *   W1_K, W1_V                 mlp: [cmp_block * D, mlp_hidden]
 *   B1_K, B1_V                 mlp: [mlp_hidden]
 *   W2_K, W2_V                 mlp: [mlp_hidden, D]
 *   B2_K, B2_V                 mlp: [D] */
typedef enum nsa_name {
  NSA_Q = 0, NSA_K = 1, NSA_V = 2, NSA_K_WIN = 3, NSA_V_WIN = 4, NSA_OUT = 5, NSA_LSE = 6, NSA_CU_SEQLENS_Q = 7,
  NSA_CU_SEQLENS_K = 8, NSA_Q_CMP = 9, NSA_K_CMP = 10, NSA_V_CMP = 11, NSA_K_SEL = 12, NSA_V_SEL = 13,
  NSA_K_COMP = 14, NSA_V_COMP = 15, NSA_BLOCK_LIST = 16, NSA_GATES = 17, NSA_O_CMP = 18, NSA_O_SEL = 19,
  NSA_O_WIN = 20, NSA_LSE_CMP = 21, NSA_LSE_SEL = 22, NSA_LSE_WIN = 23, NSA_READS = 24, NSA_PE_K = 25, NSA_PE_V = 26,
  NSA_W_K = 27, NSA_W_V = 28, NSA_B_K = 29, NSA_B_V = 30, NSA_W1_K = 31, NSA_W1_V = 32, NSA_B1_K = 33, NSA_B1_V = 34,
  NSA_W2_K = 35, NSA_W2_V = 36, NSA_B2_K = 37, NSA_B2_V = 38, NSA_K_CACHE = 39, NSA_V_CACHE = 40,
  NSA_K_SEL_CACHE = 41, NSA_V_SEL_CACHE = 42, NSA_K_WIN_CACHE = 43, NSA_V_WIN_CACHE = 44, NSA_K_COMP_CACHE = 45,
  NSA_V_COMP_CACHE = 46, NSA_K_RAW = 47, NSA_V_RAW = 48, NSA_BLOCK_TABLE = 49, NSA_CACHE_SEQLENS = 50,
  NSA_X = 51, NSA_COS = 52, NSA_SIN = 53, NSA_K_OFFSET = 54, NSA_D_OUT = 55, NSA_D_GATES = 56,
  NSA_D_O_CMP = 57, NSA_D_O_SEL = 58, NSA_D_O_WIN = 59, NSA_D_Q = 60, NSA_D_K = 61, NSA_D_V = 62, NSA_D_K_WIN = 63,
  NSA_D_V_WIN = 64, NSA_D_Q_CMP = 65, NSA_D_K_COMP = 66, NSA_D_V_COMP = 67, NSA_DELTA = 68, NSA_BLOCK_INDEX = 69,
  NSA_D_K_CMP = 70,
  NSA_D_V_CMP = 71, NSA_D_PE_K = 72, NSA_D_PE_V = 73, NSA_D_W_K = 74, NSA_D_W_V = 75, NSA_D_B_K = 76, NSA_D_B_V = 77,
  NSA_D_W1_K = 78, NSA_D_W1_V = 79, NSA_D_B1_K = 80, NSA_D_B1_V = 81, NSA_D_W2_K = 82, NSA_D_W2_V = 83,
  NSA_D_B2_K = 84, NSA_D_B2_V = 85, NSA_D_K_SEL = 86, NSA_D_V_SEL = 87
} nsa_name;
/* clang-format on */
enum { NSA_NAMES = 88 };

#endif
