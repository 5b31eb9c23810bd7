// The best selection blocks of the newest queries of decode (arXiv 2502.11089, equations 11 and 12): the operator
// `choose`, over what `scores` wrote. The rows of a tile are queries, its columns selection blocks.
//
//! template choose
//! operator choose
//! fixed   dtype, sel_block, sel_count
//! choice  query_tile = 16
//! choice  block_tile = 32 | 64
//! require !cpu || block_tile == 32
//! cost    64 - block_tile
//! grid    ceildiv(max_seqlen_q, 16), kv_heads, batch
//! threads 32

func.func @choose(
    %score_rows: !tile.view<f32, 2>, %block_list: !tile.view<i32, 4>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32,
    %max_seqlen_k: i32, %init_blocks: i32, %local_blocks: i32) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %seven = arith.constant 7 : i32
  %none = arith.constant -1 : i32
  %sel_block = arith.constant ${sel_block} : i32
  %sel_count = arith.constant ${sel_count} : i32
  %query_tile = arith.constant ${query_tile} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %infinity = arith.constant 0x7F800000 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %tile_index = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %q_begin = tile.load_scalar %sequences[%sequence, %zero] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %one] : !tile.view<i32, 2>
  %k_length = tile.load_scalar %sequences[%sequence, %three] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %seven] : !tile.view<i32, 2>
  %first_query = arith.muli %tile_index, %query_tile : i32
  %has_queries = arith.cmpi slt, %first_query, %queries : i32
  scf.if %has_queries {
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %earlier = arith.subi %k_length, %queries : i32
    %first_position = arith.addi %earlier, %first_query : i32
    %last_position = arith.subi %k_length, %one : i32
    %last_block = arith.divsi %last_position, %sel_block : i32
    %past_block = arith.addi %last_block, %one : i32
    %sel_less_one = arith.subi %sel_block, %one : i32
    %keys_rounded = arith.addi %max_seqlen_k, %sel_less_one : i32
    %columns = arith.divsi %keys_rounded, %sel_block : i32

    %row_in_tile = tile.iota 0 : tensor<${query_tile}xi32>
    %first_position_row = tile.splat %first_position : tensor<${query_tile}xi32>
    %sel_block_row = tile.splat %sel_block : tensor<${query_tile}xi32>
    %none_row = tile.splat %none : tensor<${query_tile}xi32>
    %position = arith.addi %first_position_row, %row_in_tile : tensor<${query_tile}xi32>
    %own_block = arith.divsi %position, %sel_block_row : tensor<${query_tile}xi32>
    %queries_left = arith.subi %queries, %first_query : i32
    %queries_row = tile.splat %queries_left : tensor<${query_tile}xi32>
    %is_query = arith.cmpi slt, %row_in_tile, %queries_row : tensor<${query_tile}xi32>
    // Rows that are no queries have no candidates.
    %own_or_none = arith.select %is_query, %own_block, %none_row : tensor<${query_tile}xi1>, tensor<${query_tile}xi32>

    %best = tile.top_create : !tile.top<${query_tile}, ${sel_count}>
    scf.for %first_block = %zero to %past_block step %block_tile : i32 {
      %chunk = arith.divsi %first_block, %block_tile : i32
      %scores = tile.load %score_rows rows(%r) {
        %query = arith.addi %first_query, %r : i32
        %exists = arith.cmpi slt, %query, %queries : i32
        %rows_and_begin = arith.addi %rows_before, %q_begin : i32
        %row_time = arith.addi %rows_and_begin, %query : i32
        tile.at [%row_time, %kv_head] if %exists
      } chunk(%chunk of %columns) : !tile.view<f32, 2> -> tensor<${query_tile}x${block_tile}xf32>

      // Blocks after the query's own are no candidates. The first ones, and the last ones up to its own, win against all
      // others, whose scores are finite or NaN.
      %column = tile.iota 1 : tensor<${query_tile}x${block_tile}xi32>
      %first_block_tile = tile.splat %first_block : tensor<${query_tile}x${block_tile}xi32>
      %block_index = arith.addi %first_block_tile, %column : tensor<${query_tile}x${block_tile}xi32>
      %own_block_wide = tile.broadcast %own_or_none : tensor<${query_tile}xi32> -> tensor<${query_tile}x${block_tile}xi32>
      %age = arith.subi %own_block_wide, %block_index : tensor<${query_tile}x${block_tile}xi32>
      %no_age = tile.splat %zero : tensor<${query_tile}x${block_tile}xi32>
      %init_tile = tile.splat %init_blocks : tensor<${query_tile}x${block_tile}xi32>
      %local_tile = tile.splat %local_blocks : tensor<${query_tile}x${block_tile}xi32>
      %is_future = arith.cmpi slt, %age, %no_age : tensor<${query_tile}x${block_tile}xi32>
      %is_init = arith.cmpi slt, %block_index, %init_tile : tensor<${query_tile}x${block_tile}xi32>
      %is_local = arith.cmpi slt, %age, %local_tile : tensor<${query_tile}x${block_tile}xi32>
      %is_forced = arith.ori %is_init, %is_local : tensor<${query_tile}x${block_tile}xi1>
      %infinity_tile = tile.splat %infinity : tensor<${query_tile}x${block_tile}xf32>
      %minus_inf_tile = tile.splat %minus_inf : tensor<${query_tile}x${block_tile}xf32>
      %greatest = arith.constant 0x7F7FFFFF : f32
      %greatest_tile = tile.splat %greatest : tensor<${query_tile}x${block_tile}xf32>
      %is_infinite = arith.cmpf oeq, %scores, %infinity_tile : tensor<${query_tile}x${block_tile}xf32>
      %unforced = arith.select %is_infinite, %greatest_tile, %scores : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
      %present = arith.select %is_forced, %infinity_tile, %unforced : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
      %candidates = arith.select %is_future, %minus_inf_tile, %present : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
      tile.top_insert %candidates at %first_block into %best : tensor<${query_tile}x${block_tile}xf32>, !tile.top<${query_tile}, ${sel_count}>
    }

    // Ascending, and -1 behind the last one.
    %exhausted = arith.constant 2147483647 : i32
    %exhausted_row = tile.splat %exhausted : tensor<${query_tile}xi32>
    %all_slots = scf.for %slot = %zero to %sel_count step %one iter_args(%previous = %none_row) -> (tensor<${query_tile}xi32>) : i32 {
      %chosen = tile.top_next %best after %previous : !tile.top<${query_tile}, ${sel_count}> -> tensor<${query_tile}xi32>
      %is_none = arith.cmpi eq, %chosen, %exhausted_row : tensor<${query_tile}xi32>
      %listed = arith.select %is_none, %none_row, %chosen : tensor<${query_tile}xi1>, tensor<${query_tile}xi32>
      tile.store %listed, %block_list rows(%r) {
        %query = arith.addi %first_query, %r : i32
        %exists = arith.cmpi slt, %query, %queries : i32
        %time = arith.addi %q_begin, %query : i32
        tile.at [%q_entry, %time, %kv_head, %slot] if %exists
      } : tensor<${query_tile}xi32>, !tile.view<i32, 4>
      scf.yield %chosen : tensor<${query_tile}xi32>
    }
  }
  return
}
