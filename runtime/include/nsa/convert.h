/* NSA Runtime: tensors of DLPack, and block lists as ranges of tokens. A part of nsa.h, which includes it. */
#ifndef NSA_CONVERT_H
#define NSA_CONVERT_H

#include "nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack 1.x. Makes `tensor` a view of the DLTensor that `dl_tensor` points to. To convert a DLManagedTensorVersioned,
 * pass the address of its member `dl_tensor`, not the address of the whole object. The caller keeps the DLPack object
 * and frees it. Null strides of the DLTensor mean row-major; its byte_offset is added to its data pointer. */
NSA_API nsa_status nsa_tensor_from_dlpack_sized(const void *dl_tensor, nsa_tensor *tensor, size_t tensor_bytes,
                                                nsa_error *error) NSA_NOEXCEPT;
#define nsa_tensor_from_dlpack(dl_tensor, tensor, error)                                                               \
  nsa_tensor_from_dlpack_sized(dl_tensor, tensor, sizeof(nsa_tensor), error)
/* Fills a caller-owned DLTensor that borrows the tensor's data and its shape and strides arrays.
 * device: "cpu" or "cuda:N". */
NSA_API nsa_status nsa_tensor_to_dlpack(nsa_tensor *tensor, const char *device, void *dl_tensor,
                                        nsa_error *error) NSA_NOEXCEPT;

/* Options of the two functions that convert block lists to token ranges and back. Block lists and token ranges are
 * int32 in host memory. A block list is [.., kv_heads, slots], and its token ranges are [.., kv_heads, slots, 2], where
 * the number of slots may differ. A token range is half-open and counts tokens of the sequence; an unused range is [0,
 * 0]. In the dense layout the token ranges of a block list with one kv head may be [batch, time, slots, 2]. */
typedef struct nsa_range_options {
  size_t size;
  int32_t sel_block; /* tokens of a block */
  int32_t merge;     /* 1: adjacent blocks become one range. The way back accepts merged and unmerged ranges */
  int64_t seqlen_k;  /* dense layout: keys of each sequence; 0: as many as queries */
  /* Packed layout only: cu_seqlens_q and cu_seqlens_k are int32 [batch + 1] in host memory. If only one of cu_seqlens_q
   * and cu_seqlens_k is set, its lengths are used for both queries and keys. */
  const nsa_tensor *cu_seqlens_q, *cu_seqlens_k;
  int64_t reserved[4];
} nsa_range_options;

/* Writes the token ranges of the blocks in a block list, in the order of the list. No token range reaches beyond the
 * query's own token: the range of the block that contains this token ends with it, and a block that begins after this
 * token gets no range. The block list must be ascending, and -1 may only follow the last block. */
NSA_API nsa_status nsa_ranges_from_block_list(const nsa_tensor *block_list, const nsa_range_options *options,
                                              const nsa_tensor *ranges, nsa_error *error) NSA_NOEXCEPT;
/* Writes the list of the blocks that token ranges cover. A token range must cover whole blocks, or end with the query's
 * own token. Token ranges may be in any order and may overlap. */
NSA_API nsa_status nsa_block_list_from_ranges(const nsa_tensor *ranges, const nsa_range_options *options,
                                              const nsa_tensor *block_list, nsa_error *error) NSA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
