// The operator `compress` by a linear map: block c of a sequence becomes sum_i (x[c*d + i] + pe[i]) W[i] + b, in K and
// in V. K and V have different weights, which all heads share. For each i, the left side of the product is the tokens i
// of a tile of blocks where they lie in memory, so it needs no memory of its own. Inputs come in chunks, so that
// weights of any size pass through shared memory. The loop over chunks is outside and the loop over i is inside,
// because the loop over i is long enough to load ahead. x + pe is rounded to the tensors' type where the product takes
// no wider type. Its relative error is as large as that of rounding the result. A program computes one chunk of the
// columns of K or of V, for one head. Outputs that the caller did not pass are not computed.
//
//! template compress_linear
//! operator compress
//! fixed   dtype, packed, page_size, qk_dim, v_dim, cmp_block, cmp_stride, cmp_kind, mlp_hidden, mlp_activation
// The number of rows in a page of compressed rows if the cache has pages.
//! let     comp_page = page_size / cmp_stride
//! require cmp_kind == linear
//! choice  block_tile = 16 | 32 | 64 | 128
//! choice  input_tile = 16 | 32 | 64 | 128
//! choice  column_tile = 16 | 32 | 48 | 64 | 96 | 128 | 192 | 256
//! choice  stages = 1 | 2 | 3 | 4
//! choice  warps = 1 | 2 | 4 | 8
//! require cpu ? warps == 1 && stages == 1 : block_tile % (16 * warps) == 0 && block_tile <= 32 * warps && stages > 1
// A chunk is no wider than the larger head, so no chunk holds padding alone.
//! let     widest = max(qk_dim, v_dim)
//! require column_tile == 16 || column_tile < widest + 16
//! require input_tile == 16 || input_tile < widest + 16
//! let     k_chunks = ceildiv(qk_dim, column_tile)
//! let     v_chunks = ceildiv(v_dim, column_tile)
//! let     k_inputs = ceildiv(qk_dim, input_tile)
//! let     v_inputs = ceildiv(v_dim, input_tile)
//! let     shared_bytes = stages * input_tile * (block_tile * (dtype_bytes == 2) + column_tile) * dtype_bytes
//! require cpu || shared_bytes <= shared_limit
// Registers of a GPU thread: sums, the left side, and the pe that is added to it.
//! let     registers = block_tile * (column_tile + input_tile * dtype_bytes / 2) / (32 * warps)
//! require cpu || registers <= 168
// The cost of one block: the products of all chunks with their padding, its tokens once for each chunk of columns, its
// share of the weights that a step loads, and its share of the step's fixed cost.
//! let     k_products = k_chunks * k_inputs
//! let     v_products = v_chunks * v_inputs
//! let     products = (k_products + v_products) * input_tile * column_tile
//! let     tokens = (k_products + v_products) * input_tile * dtype_bytes * (cpu ? 16 : 6)
//! let     weights = (k_products + v_products) * input_tile * column_tile * (cpu ? 16 : 6 * dtype_bytes) / block_tile
//! let     steps = (k_products + v_products) * (cpu ? 20000 : stages == 2 ? 60000 : 40000 + shared_bytes / 8) / block_tile
//! let     cpu_bytes = 4 * (block_tile * (input_tile + column_tile) + input_tile * column_tile)
//! let     crowding = cpu ? max(0, cpu_bytes / 1024 - 96) + block_tile * 2 : max(0, registers - 112) + 15 * max(0, warps - 4) + block_tile * max(column_tile, 64) / 32 + 8 * max(0, block_tile - 64) + 20 * (block_tile / (16 * warps))
//! cost    cmp_block * (products + tokens + weights + steps) * (1024 + crowding) / 1024
//! grid    ceildiv(max_blocks_c, block_tile) * (k_chunks + v_chunks), kv_heads, batch
//! threads 32 * warps

func.func @compress_linear(
    %k: !tile.view<${element}, 3>, %v: !tile.view<${element}, 3>,
    %pe_k: !tile.view<${element}, 1>, %pe_v: !tile.view<${element}, 1>,
    %w_k: !tile.view<${element}, 2>, %w_v: !tile.view<${element}, 2>,
    %b_k: !tile.view<${element}, 1>, %b_v: !tile.view<${element}, 1>,
    %k_comp: !tile.view<${element}, 3, ${comp_page}>, %v_comp: !tile.view<${element}, 3, ${comp_page}>,
    %sequences: !tile.view<i32, 2>, %seqlen_k: i32) attributes {tile.warps = ${warps} : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %packed = arith.constant ${packed} : i1
  %cmp_block = arith.constant ${cmp_block} : i32
  %cmp_stride = arith.constant ${cmp_stride} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %input_tile = arith.constant ${input_tile} : i32
  %zero_f = arith.constant 0.0 : f32

  //! part compress_chunk
  %k_inputs = arith.constant ${k_inputs} : i32
  %v_inputs = arith.constant ${v_inputs} : i32
  %input_chunks = arith.select %of_keys, %k_inputs, %v_inputs : i32
  %x = arith.select %of_keys, %k, %v : !tile.view<${element}, 3>
  %pe = arith.select %of_keys, %pe_k, %pe_v : !tile.view<${element}, 1>
  %w = arith.select %of_keys, %w_k, %w_v : !tile.view<${element}, 2>

  // Where this sequence and its blocks lie. A packed launch reads it from a table whose lengths were checked.
  //! part compress_blocks
  scf.if %works {
    %past_tile = arith.addi %first_block, %block_tile : i32
    %past_block = arith.minsi %past_tile, %blocks : i32
    %has_pe = tile.present %pe : !tile.view<${element}, 1>
    %no_sum = tile.splat %zero_f : tensor<${block_tile}x${column_tile}xf32>

    //! part compress_sums weights=w chunk=chunk of=columns width=${column_tile} none=no_sum

    //! part compress_bias bias=b sums=sums biased=biased chunk=chunk of=columns width=${column_tile}
    %result = tile.cast %biased : tensor<${block_tile}x${column_tile}xf32> -> tensor<${block_tile}x${column_tile}x${element}>
    //! part compress_store
  }
  return
}
