// The operator `scores`: scores of selection blocks for the newest queries of decode (arXiv 2502.11089, equations 9 and
// 10). It runs after `split_cmp` and adds up the log-sum-exps of its splits.
//
// The rows of a tile are selection blocks, and its columns are query heads of the group: one query has as many rows as
// it has blocks. A *tap* is the set of compressed blocks that meet a selection block at one distance. A tap shares one
// product, as in select.mlir, which serves many queries.
//
// The stored scores are what `rank` compares. The first blocks of a sequence, and the last blocks up to the query's
// own, have scores above all others. A NaN becomes a score below all others.
//
//! template scores
//! operator scores
//! fixed   dtype, qk_dim, group, page_size, cmp_block, cmp_stride, sel_block, sel_count, many_queries
//! let     key_page = page_size / cmp_stride
//! let     qk_pad = roundup(qk_dim, dot_step)
// `inner` compressed blocks begin in a selection block. `before` blocks begin before it and reach into it.
//! let     inner = sel_block / cmp_stride
//! let     cmp_strides = cmp_block / cmp_stride
//! let     before = cmp_strides - 1
//! let     taps = inner + before
//! choice  block_tile = 16 | 32 | 64
//! choice  head_tile = 16 | 32 | 64 | 128
//! choice  stages = 1 | 2 | 3 | 4
//! choice  warps = 1 | 2 | 4
//! require head_tile == 16 || head_tile < 2 * group
//! require cpu ? warps == 1 && stages == 1 : block_tile == 16 * warps && stages > 1
//! let     head_tiles = ceildiv(group, head_tile)
//! let     shared_bytes = (stages * block_tile + head_tile) * qk_pad * dtype_bytes
//! require cpu || shared_bytes <= shared_limit
//! let     registers = block_tile * (4 * head_tile + (dtype_bytes == 2 ? qk_pad / 2 : 0)) / (32 * warps)
//! require cpu || registers <= 200 || (head_tile == 16 && warps == 1)
// Each program loads the queries again, so large tiles are better; but with few queries many programs are needed.
//! let     wanted = many_queries ? 2 : 1
//! cost    head_tiles * 1000 + (cpu ? max(64 - block_tile, 0) : 10 * max(4 - stages, 0) + 5 * max(warps - wanted, wanted - warps))
//! grid    max_seqlen_q * ceildiv(ceildiv(max_seqlen_k, sel_block), block_tile), kv_heads, batch
//! threads 32 * warps

func.func @scores(
    %q: !tile.view<${element}, 3>, %k: !tile.view<${element}, 3, ${key_page}>, %lse_groups: !tile.view<f32, 3>,
    %scores: !tile.view<f32, 3>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %max_seqlen_k: i32, %splits: i32,
    %init_blocks: i32, %local_blocks: i32, %scale_log2: f32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %four = arith.constant 4 : i32
  %group = arith.constant ${group} : i32
  %sel_block = arith.constant ${sel_block} : i32
  %cmp_stride = arith.constant ${cmp_stride} : i32
  %cmp_block = arith.constant ${cmp_block} : i32
  %inner = arith.constant ${inner} : i32
  %cmp_strides = arith.constant ${cmp_strides} : i32
  %before = arith.constant ${before} : i32
  %taps = arith.constant ${taps} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %head_tile = arith.constant ${head_tile} : i32
  %zero_f = arith.constant 0.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %program = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %sel_less_one = arith.subi %sel_block, %one : i32
  %tile_less_one = arith.subi %block_tile, %one : i32
  %keys_rounded = arith.addi %max_seqlen_k, %sel_less_one : i32
  %most_blocks = arith.divsi %keys_rounded, %sel_block : i32
  %blocks_rounded = arith.addi %most_blocks, %tile_less_one : i32
  %tiles = arith.divsi %blocks_rounded, %block_tile : i32
  %tiles_or_one = arith.maxsi %tiles, %one : i32
  %query = arith.divsi %program, %tiles_or_one : i32
  %tile_index = arith.remsi %program, %tiles_or_one : i32

  %field_q_begin = arith.constant ${sequence_q_begin} : i32
  %field_q_length = arith.constant ${sequence_q_length} : i32
  %field_k_length = arith.constant ${sequence_k_length} : i32
  %field_c_begin = arith.constant ${sequence_c_begin} : i32
  %field_k_entry = arith.constant ${sequence_k_entry} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %q_begin = tile.load_scalar %sequences[%sequence, %field_q_begin] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %field_q_length] : !tile.view<i32, 2>
  %k_length = tile.load_scalar %sequences[%sequence, %field_k_length] : !tile.view<i32, 2>
  %c_begin = tile.load_scalar %sequences[%sequence, %field_c_begin] : !tile.view<i32, 2>
  %k_entry = tile.load_scalar %sequences[%sequence, %field_k_entry] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %field_q_entry] : !tile.view<i32, 2>
  %earlier = arith.subi %k_length, %queries : i32
  %position = arith.addi %earlier, %query : i32
  %own_block = arith.divsi %position, %sel_block : i32
  %first_block = arith.muli %tile_index, %block_tile : i32
  %has_query = arith.cmpi slt, %query, %queries : i32
  %has_blocks = arith.cmpi sle, %first_block, %own_block : i32
  %works = arith.andi %has_query, %has_blocks : i1
  scf.if %works {
    %time = arith.addi %q_begin, %query : i32
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %row_time = arith.addi %rows_before, %time : i32
    %group_first = arith.muli %kv_head, %group : i32

    // The compressed blocks that end at the query's position or before it.
    %past_position = arith.addi %position, %one : i32
    %span = arith.subi %past_position, %cmp_block : i32
    %span_and_stride = arith.addi %span, %cmp_stride : i32
    %real_span = arith.maxsi %span_and_stride, %zero : i32
    %visible = arith.divsi %real_span, %cmp_stride : i32
    %first_inner = arith.muli %first_block, %inner : i32
    %first_compressed = arith.subi %first_inner, %before : i32

    %no_row = tile.splat %zero_f : tensor<${block_tile}xf32>
    %nothing = tile.splat %zero_f : tensor<${block_tile}x${head_tile}xf32>
    %minus_inf_tile = tile.splat %minus_inf : tensor<${block_tile}x${head_tile}xf32>
    %scale = tile.splat %scale_log2 : tensor<${block_tile}x${head_tile}xf32>
    %row_in_tile = tile.iota 0 : tensor<${block_tile}xi32>
    %inner_row = tile.splat %inner : tensor<${block_tile}xi32>
    %zero_row = tile.splat %zero : tensor<${block_tile}xi32>
    %visible_row = tile.splat %visible : tensor<${block_tile}xi32>
    %row_inner = arith.muli %row_in_tile, %inner_row : tensor<${block_tile}xi32>
    %column = tile.iota 1 : tensor<${block_tile}x${head_tile}xi32>

    %score_all = scf.for %first_member = %zero to %group step %head_tile
        iter_args(%score_heads = %no_row) -> (tensor<${block_tile}xf32>) : i32 {
      %members = arith.subi %group, %first_member : i32
      %first_head = arith.addi %group_first, %first_member : i32
      %members_wide = tile.splat %members : tensor<${block_tile}x${head_tile}xi32>
      %is_member = arith.cmpi slt, %column, %members_wide : tensor<${block_tile}x${head_tile}xi32>
      %q_tile = tile.load %q rows(%r) {
        %exists = arith.cmpi slt, %r, %members : i32
        %head = arith.addi %first_head, %r : i32
        tile.at [%q_entry, %time, %head] if %exists
      } columns(${qk_dim}) : !tile.view<${element}, 3> -> tensor<${head_tile}x${qk_pad}x${element}>

      // The log-sum-exp of each head over all splits, in base 2. Every row holds it. Four splits are loaded at once,
      // because each load waits for memory.
      %chunk = arith.divsi %first_member, %head_tile : i32
      %m_all, %l_all = scf.for %split = %zero to %splits step %four
          iter_args(%m = %minus_inf_tile, %l = %nothing)
          -> (tensor<${block_tile}x${head_tile}xf32>, tensor<${block_tile}x${head_tile}xf32>) : i32 {
        %split_0 = arith.addi %split, %zero : i32
        %split_1 = arith.addi %split, %one : i32
        %split_2 = arith.addi %split, %two : i32
        %split_3 = arith.addi %split, %three : i32
        %is_split_0 = arith.cmpi slt, %split_0, %splits : i32
        %lse_0 = tile.load %lse_groups rows(%r) {
          tile.at [%split_0, %row_time, %kv_head] if %is_split_0
        } chunk(%chunk of %group) : !tile.view<f32, 3> -> tensor<${block_tile}x${head_tile}xf32>
        %is_split_1 = arith.cmpi slt, %split_1, %splits : i32
        %lse_1 = tile.load %lse_groups rows(%r) {
          tile.at [%split_1, %row_time, %kv_head] if %is_split_1
        } chunk(%chunk of %group) : !tile.view<f32, 3> -> tensor<${block_tile}x${head_tile}xf32>
        %is_split_2 = arith.cmpi slt, %split_2, %splits : i32
        %lse_2 = tile.load %lse_groups rows(%r) {
          tile.at [%split_2, %row_time, %kv_head] if %is_split_2
        } chunk(%chunk of %group) : !tile.view<f32, 3> -> tensor<${block_tile}x${head_tile}xf32>
        %is_split_3 = arith.cmpi slt, %split_3, %splits : i32
        %lse_3 = tile.load %lse_groups rows(%r) {
          tile.at [%split_3, %row_time, %kv_head] if %is_split_3
        } chunk(%chunk of %group) : !tile.view<f32, 3> -> tensor<${block_tile}x${head_tile}xf32>
        %is_split_tile_0 = tile.splat %is_split_0 : tensor<${block_tile}x${head_tile}xi1>
        %counts_0 = arith.andi %is_member, %is_split_tile_0 : tensor<${block_tile}x${head_tile}xi1>
        %there_0 = arith.select %counts_0, %lse_0, %minus_inf_tile : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>
        %is_split_tile_1 = tile.splat %is_split_1 : tensor<${block_tile}x${head_tile}xi1>
        %counts_1 = arith.andi %is_member, %is_split_tile_1 : tensor<${block_tile}x${head_tile}xi1>
        %there_1 = arith.select %counts_1, %lse_1, %minus_inf_tile : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>
        %is_split_tile_2 = tile.splat %is_split_2 : tensor<${block_tile}x${head_tile}xi1>
        %counts_2 = arith.andi %is_member, %is_split_tile_2 : tensor<${block_tile}x${head_tile}xi1>
        %there_2 = arith.select %counts_2, %lse_2, %minus_inf_tile : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>
        %is_split_tile_3 = tile.splat %is_split_3 : tensor<${block_tile}x${head_tile}xi1>
        %counts_3 = arith.andi %is_member, %is_split_tile_3 : tensor<${block_tile}x${head_tile}xi1>
        %there_3 = arith.select %counts_3, %lse_3, %minus_inf_tile : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>
        %m_0 = arith.maxnumf %m, %there_0 : tensor<${block_tile}x${head_tile}xf32>
        %m_1 = arith.maxnumf %there_1, %there_2 : tensor<${block_tile}x${head_tile}xf32>
        %m_2 = arith.maxnumf %m_0, %m_1 : tensor<${block_tile}x${head_tile}xf32>
        %m_next = arith.maxnumf %m_2, %there_3 : tensor<${block_tile}x${head_tile}xf32>
        %m_empty = arith.cmpf oeq, %m_next, %minus_inf_tile : tensor<${block_tile}x${head_tile}xf32>
        %m_finite = arith.select %m_empty, %nothing, %m_next : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>
        %m_below = arith.subf %m, %m_finite : tensor<${block_tile}x${head_tile}xf32>
        %decay = math.exp2 %m_below : tensor<${block_tile}x${head_tile}xf32>
        %l_decayed = arith.mulf %l, %decay : tensor<${block_tile}x${head_tile}xf32>
        %below_0 = arith.subf %there_0, %m_finite : tensor<${block_tile}x${head_tile}xf32>
        %weight_0 = math.exp2 %below_0 : tensor<${block_tile}x${head_tile}xf32>
        %l_0 = arith.addf %l_decayed, %weight_0 : tensor<${block_tile}x${head_tile}xf32>
        %below_1 = arith.subf %there_1, %m_finite : tensor<${block_tile}x${head_tile}xf32>
        %weight_1 = math.exp2 %below_1 : tensor<${block_tile}x${head_tile}xf32>
        %l_1 = arith.addf %l_0, %weight_1 : tensor<${block_tile}x${head_tile}xf32>
        %below_2 = arith.subf %there_2, %m_finite : tensor<${block_tile}x${head_tile}xf32>
        %weight_2 = math.exp2 %below_2 : tensor<${block_tile}x${head_tile}xf32>
        %l_2 = arith.addf %l_1, %weight_2 : tensor<${block_tile}x${head_tile}xf32>
        %below_3 = arith.subf %there_3, %m_finite : tensor<${block_tile}x${head_tile}xf32>
        %weight_3 = math.exp2 %below_3 : tensor<${block_tile}x${head_tile}xf32>
        %l_next = arith.addf %l_2, %weight_3 : tensor<${block_tile}x${head_tile}xf32>
        scf.yield %m_next, %l_next : tensor<${block_tile}x${head_tile}xf32>, tensor<${block_tile}x${head_tile}xf32>
      }
      // A head without weight (it sees no block) adds nothing to any block. A head that met a NaN makes the scores of
      // all blocks NaN.
      %l_log2 = math.log2 %l_all : tensor<${block_tile}x${head_tile}xf32>
      %total = arith.addf %m_all, %l_log2 : tensor<${block_tile}x${head_tile}xf32>
      %minus_total = arith.negf %total : tensor<${block_tile}x${head_tile}xf32>
      %is_weightless = arith.cmpf oeq, %l_all, %nothing : tensor<${block_tile}x${head_tile}xf32>
      %log2_norm = arith.select %is_weightless, %minus_inf_tile, %minus_total : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>

      %score_taps = scf.for %tap = %zero to %taps step %one
          iter_args(%score = %score_heads) -> (tensor<${block_tile}xf32>) : i32 {
        %compressed_base = arith.addi %first_compressed, %tap : i32
        %k_tile = tile.load %k rows(%r) {
          %block_inner = arith.muli %r, %inner : i32
          %compressed = arith.addi %compressed_base, %block_inner : i32
          %is_begun = arith.cmpi sge, %compressed, %zero : i32
          %is_visible = arith.cmpi slt, %compressed, %visible : i32
          %exists = arith.andi %is_begun, %is_visible : i1
          %key_time = arith.addi %c_begin, %compressed : i32
          tile.at [%k_entry, %key_time, %kv_head] if %exists
        } columns(${qk_dim}) : !tile.view<${element}, 3, ${key_page}> -> tensor<${block_tile}x${qk_pad}x${element}>
        %s = tile.dot %k_tile, %q_tile, %nothing {transpose_b} : tensor<${block_tile}x${qk_pad}x${element}>, tensor<${head_tile}x${qk_pad}x${element}> -> tensor<${block_tile}x${head_tile}xf32>
        %p_log2 = math.fma %s, %scale, %log2_norm : tensor<${block_tile}x${head_tile}xf32>
        %p_all = math.exp2 %p_log2 : tensor<${block_tile}x${head_tile}xf32>

        %base_row = tile.splat %compressed_base : tensor<${block_tile}xi32>
        %compressed_row = arith.addi %base_row, %row_inner : tensor<${block_tile}xi32>
        %row_begun = arith.cmpi sge, %compressed_row, %zero_row : tensor<${block_tile}xi32>
        %row_visible = arith.cmpi slt, %compressed_row, %visible_row : tensor<${block_tile}xi32>
        %row_counts = arith.andi %row_begun, %row_visible : tensor<${block_tile}xi1>
        %p = arith.select %is_member, %p_all, %nothing : tensor<${block_tile}x${head_tile}xi1>, tensor<${block_tile}x${head_tile}xf32>
        %p_sum = tile.reduce add %p : tensor<${block_tile}x${head_tile}xf32> -> tensor<${block_tile}xf32>
        %p_counts = arith.select %row_counts, %p_sum, %no_row : tensor<${block_tile}xi1>, tensor<${block_tile}xf32>

        // The tokens that the compressed block shares with the selection block, in units of cmp_stride.
        %begin = arith.subi %tap, %before : i32
        %end = arith.addi %begin, %cmp_strides : i32
        %own_begin = arith.maxsi %begin, %zero : i32
        %own_end = arith.minsi %end, %inner : i32
        %share = arith.subi %own_end, %own_begin : i32
        %share_f = arith.sitofp %share : i32 to f32
        %share_row = tile.splat %share_f : tensor<${block_tile}xf32>
        %score_next = math.fma %p_counts, %share_row, %score : tensor<${block_tile}xf32>
        scf.yield %score_next : tensor<${block_tile}xf32>
      } {tile.stages = ${stages} : i32}
      scf.yield %score_taps : tensor<${block_tile}xf32>
    }
    // Scores are sums of weights, so no score is below 0.
    %infinity = arith.constant 0x7F800000 : f32
    %greatest = arith.constant 0x7F7FFFFF : f32
    %below_numbers = arith.constant -1.0 : f32
    %infinity_row = tile.splat %infinity : tensor<${block_tile}xf32>
    %greatest_row = tile.splat %greatest : tensor<${block_tile}xf32>
    %below_row = tile.splat %below_numbers : tensor<${block_tile}xf32>
    %past_local = arith.subi %own_block, %local_blocks : i32
    %first_block_row = tile.splat %first_block : tensor<${block_tile}xi32>
    %block_row = arith.addi %first_block_row, %row_in_tile : tensor<${block_tile}xi32>
    %init_row = tile.splat %init_blocks : tensor<${block_tile}xi32>
    %local_row = tile.splat %past_local : tensor<${block_tile}xi32>
    %is_init = arith.cmpi slt, %block_row, %init_row : tensor<${block_tile}xi32>
    %is_local = arith.cmpi sgt, %block_row, %local_row : tensor<${block_tile}xi32>
    %is_forced = arith.ori %is_init, %is_local : tensor<${block_tile}xi1>
    %is_infinite = arith.cmpf oeq, %score_all, %infinity_row : tensor<${block_tile}xf32>
    %finite = arith.select %is_infinite, %greatest_row, %score_all : tensor<${block_tile}xi1>, tensor<${block_tile}xf32>
    %is_nan = arith.cmpf uno, %finite, %finite : tensor<${block_tile}xf32>
    %number = arith.select %is_nan, %below_row, %finite : tensor<${block_tile}xi1>, tensor<${block_tile}xf32>
    %compared = arith.select %is_forced, %infinity_row, %number : tensor<${block_tile}xi1>, tensor<${block_tile}xf32>
    tile.store %compared, %scores rows(%r) {
      %block = arith.addi %first_block, %r : i32
      %exists = arith.cmpi sle, %block, %own_block : i32
      tile.at [%row_time, %kv_head, %block] if %exists
    } : tensor<${block_tile}xf32>, !tile.view<f32, 3>
  }
  return
}
