// The operator `compress` by the mean: block c of a sequence is the mean of its tokens c*d .. c*d + l - 1, in K and in
// V. The tokens of neighbouring blocks overlap. So a program loads the tokens of a tile of blocks once, and sums them
// by a product with a matrix of zeros and ones, whose rows are blocks and whose columns are tokens. A token outside of
// a block must not reach the block, NaN and Inf included, so the product is one in which zero annihilates. A program
// computes one chunk of the columns of K or of V, for one head. Outputs that the caller did not pass are not computed.
//
//! template compress_mean
//! operator compress
//! fixed   dtype, packed, page_size, qk_dim, v_dim, cmp_block, cmp_stride, cmp_kind, mlp_hidden, mlp_activation
// The number of rows in a page of compressed rows if the cache has pages.
//! let     comp_page = page_size / cmp_stride
//! require cmp_kind == mean
//! choice  block_tile = 8 | 16 | 32 | 64
//! choice  token_tile = 16 | 32 | 64 | 128
//! choice  column_tile = 16 | 32 | 48 | 64 | 96 | 128 | 192 | 256
//! choice  stages = 1 | 2 | 3 | 4
//! choice  warps = 1 | 2 | 4
//! require cpu ? block_tile >= vector_lanes && warps == 1 && stages == 1 : block_tile == 16 * warps && stages > 1
// A chunk is no wider than the larger head, so no chunk holds padding alone.
//! let     widest = max(qk_dim, v_dim)
//! require column_tile == 16 || column_tile < widest + 16
//! let     k_chunks = ceildiv(qk_dim, column_tile)
//! let     v_chunks = ceildiv(v_dim, column_tile)
//! let     shared_bytes = stages * token_tile * column_tile * dtype_bytes
//! require cpu || shared_bytes <= shared_limit
//! let     registers = block_tile * (column_tile + token_tile / (dtype_bytes == 2 ? 2 : 1)) / (32 * warps)
//! require cpu || registers <= 160
// The cost of one block. A tile reads the tokens of its blocks, rounded up to whole tiles of tokens; they include
// tokens that its last block shares with the next tile. On a GPU all warps copy and inspect the tokens together, each
// warp multiplies all of them by its own blocks, and a program waits for its first tokens. On a CPU each token meets
// all blocks. A product of floats is unrolled code, which takes long to compile if it is wide.
//! let     chunks = k_chunks + v_chunks
//! let     tokens = roundup((block_tile - 1) * cmp_stride + cmp_block, token_tile)
//! let     gpu_issue = warps * tokens / token_tile * 150 + tokens * column_tile * (7 + (dtype_bytes == 2 ? 4 : 80) * warps) / 100
//! let     gpu_waits = 2000 / max(1, stages - 1) + shared_bytes / 20
//! let     cpu_work = tokens * column_tile * (vector_lanes + block_tile) / vector_lanes + tokens / token_tile * 200 + max(0, token_tile * column_tile - 4096) * 4
//! let     code = cpu || dtype_bytes == 2 ? 0 : column_tile * column_tile
//! cost    chunks * ((cpu ? cpu_work : gpu_issue + gpu_waits) * 16 / block_tile + code)
//! grid    ceildiv(max_blocks_c, block_tile) * (k_chunks + v_chunks), kv_heads, batch
//! threads 32 * warps

func.func @compress_mean(
    %k: !tile.view<${element}, 3>, %v: !tile.view<${element}, 3>,
    %k_comp: !tile.view<${element}, 3, ${comp_page}>, %v_comp: !tile.view<${element}, 3, ${comp_page}>,
    %sequences: !tile.view<i32, 2>, %seqlen_k: i32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %packed = arith.constant ${packed} : i1
  %cmp_block = arith.constant ${cmp_block} : i32
  %cmp_stride = arith.constant ${cmp_stride} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %token_tile = arith.constant ${token_tile} : i32
  %zero_f = arith.constant 0.0 : f32
  %one_f = arith.constant 1.0 : f32

  //! part compress_chunk
  %x = arith.select %of_keys, %k, %v : !tile.view<${element}, 3>

  // Where this sequence and its blocks lie. A packed launch reads it from a table whose lengths were checked.
  //! part compress_blocks
  scf.if %works {
    %past_tile = arith.addi %first_block, %block_tile : i32
    %past_block = arith.minsi %past_tile, %blocks : i32
    %last_block = arith.subi %past_block, %one : i32
    %first_token = arith.muli %first_block, %cmp_stride : i32
    %last_begin = arith.muli %last_block, %cmp_stride : i32
    %past_token = arith.addi %last_begin, %cmp_block : i32

    %row = tile.iota 0 : tensor<${block_tile}xi32>
    %stride_row = tile.splat %cmp_stride : tensor<${block_tile}xi32>
    %first_row = tile.splat %first_token : tensor<${block_tile}xi32>
    %row_begin = arith.muli %row, %stride_row : tensor<${block_tile}xi32>
    %block_begin = arith.addi %first_row, %row_begin : tensor<${block_tile}xi32>
    %block_begins = tile.broadcast %block_begin : tensor<${block_tile}xi32> -> tensor<${block_tile}x${token_tile}xi32>
    %column = tile.iota 1 : tensor<${block_tile}x${token_tile}xi32>
    %length = tile.splat %cmp_block : tensor<${block_tile}x${token_tile}xi32>
    %zeros = tile.splat %zero_f : tensor<${block_tile}x${token_tile}xf32>
    %ones = tile.splat %one_f : tensor<${block_tile}x${token_tile}xf32>
    %no_sum = tile.splat %zero_f : tensor<${block_tile}x${column_tile}xf32>

    %sums = scf.for %token = %first_token to %past_token step %token_tile
        iter_args(%sum = %no_sum) -> (tensor<${block_tile}x${column_tile}xf32>) : i32 {
      %x_tile = tile.load %x rows(%r) {
        %index = arith.addi %token, %r : i32
        %exists = arith.cmpi slt, %index, %past_token : i32
        %time = arith.addi %begin, %index : i32
        tile.at [%entry, %time, %kv_head] if %exists
      } chunk(%chunk of %columns) : !tile.view<${element}, 3> -> tensor<${token_tile}x${column_tile}x${element}>

      // Tokens before the block have negative numbers, which are greater than all others as unsigned numbers.
      %token_of_tile = tile.splat %token : tensor<${block_tile}x${token_tile}xi32>
      %index = arith.addi %token_of_tile, %column : tensor<${block_tile}x${token_tile}xi32>
      %place = arith.subi %index, %block_begins : tensor<${block_tile}x${token_tile}xi32>
      %is_member = arith.cmpi ult, %place, %length : tensor<${block_tile}x${token_tile}xi32>
      %member = arith.select %is_member, %ones, %zeros : tensor<${block_tile}x${token_tile}xi1>, tensor<${block_tile}x${token_tile}xf32>
      %members = tile.cast %member : tensor<${block_tile}x${token_tile}xf32> -> tensor<${block_tile}x${token_tile}x${mma_element}>
      %sum_next = tile.dot %members, %x_tile, %sum {zero_annihilates} : tensor<${block_tile}x${token_tile}x${mma_element}>, tensor<${token_tile}x${column_tile}x${element}> -> tensor<${block_tile}x${column_tile}xf32>
      scf.yield %sum_next : tensor<${block_tile}x${column_tile}xf32>
    } {tile.stages = ${stages} : i32}

    %cmp_block_f = arith.sitofp %cmp_block : i32 to f32
    %tokens_of_block = tile.splat %cmp_block_f : tensor<${block_tile}x${column_tile}xf32>
    %mean = arith.divf %sums, %tokens_of_block : tensor<${block_tile}x${column_tile}xf32>
    %result = tile.cast %mean : tensor<${block_tile}x${column_tile}xf32> -> tensor<${block_tile}x${column_tile}x${element}>
    //! part compress_store
  }
  return
}
