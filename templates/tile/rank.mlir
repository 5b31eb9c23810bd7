// How many selection blocks stand before each one in the order of arXiv 2502.11089, equation 11, for the newest queries
// of decode: the operator `rank`, over what `scores` wrote. Of equals the lower block comes first. Rows and columns of a
// tile are blocks: each row is compared with all columns. Few queries are too few for a list that grows (select.mlir), but
// a thousand blocks are only a million pairs.
//
//! template rank
//! operator rank
//! fixed   dtype, sel_block, sel_count, many_queries
//! choice  block_tile = 16 | 32 | 64
//! choice  column_tile = 32 | 64
//! choice  warps = 1 | 2 | 4
//! require cpu ? warps == 1 && column_tile == 32 : block_tile % (16 * warps) == 0 && block_tile <= 32 * warps
// A column that is loaded meets as many rows as a thread has; but few queries want programs.
//! let     wanted = many_queries ? 64 : 32
//! cost    max(block_tile - wanted, wanted - block_tile) + max(warps - 2, 2 - warps) + 64 - column_tile
//! grid    max_seqlen_q * ceildiv(ceildiv(max_seqlen_k, sel_block), block_tile), kv_heads, batch
//! threads 32 * warps

func.func @rank(
    %scores: !tile.view<f32, 3>, %score_rows: !tile.view<f32, 3>, %ranks: !tile.view<f32, 3>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %max_seqlen_k: i32)
    attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %seven = arith.constant 7 : i32
  %sel_block = arith.constant ${sel_block} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %column_tile = arith.constant ${column_tile} : i32
  %piece_columns = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %one_f = arith.constant 1.0 : f32

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

  %q_begin = tile.load_scalar %sequences[%sequence, %zero] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %one] : !tile.view<i32, 2>
  %k_length = tile.load_scalar %sequences[%sequence, %three] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %seven] : !tile.view<i32, 2>
  %earlier = arith.subi %k_length, %queries : i32
  %position = arith.addi %earlier, %query : i32
  %own_block = arith.divsi %position, %sel_block : i32
  %past_block = arith.addi %own_block, %one : i32
  %first_block = arith.muli %tile_index, %block_tile : i32
  %has_query = arith.cmpi slt, %query, %queries : i32
  %has_blocks = arith.cmpi sle, %first_block, %own_block : i32
  %works = arith.andi %has_query, %has_blocks : i1
  scf.if %works {
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %time = arith.addi %q_begin, %query : i32
    %row_time = arith.addi %rows_before, %time : i32
    %row_key = tile.load %scores rows(%r) {
      %block = arith.addi %first_block, %r : i32
      %exists = arith.cmpi sle, %block, %own_block : i32
      tile.at [%row_time, %kv_head, %block] if %exists
    } : !tile.view<f32, 3> -> tensor<${block_tile}xf32>
    %row_key_wide = tile.broadcast %row_key : tensor<${block_tile}xf32> -> tensor<${block_tile}x${column_tile}xf32>
    %ones = tile.splat %one_f : tensor<${block_tile}x${column_tile}xf32>
    %nothing = tile.splat %zero_f : tensor<${block_tile}x${column_tile}xf32>
    %past_row_block = arith.addi %first_block, %block_tile : i32
    %before_all = scf.for %first_column = %zero to %past_block step %column_tile
        iter_args(%before = %nothing) -> (tensor<${block_tile}x${column_tile}xf32>) : i32 {
      // All rows are the same. What stands behind the last block may be anything.
      %piece = arith.divsi %first_column, %piece_columns : i32
      %key = tile.load %score_rows rows(%r) {
        %exists = arith.constant true
        tile.at [%row_time, %kv_head, %piece] if %exists
      } columns(${column_tile}) : !tile.view<f32, 3> -> tensor<${block_tile}x${column_tile}xf32>

      // Columns that are all lower than the rows win every tie, those that are all higher none.
      %past_column = arith.addi %first_column, %column_tile : i32
      %all_lower = arith.cmpi sle, %past_column, %first_block : i32
      %all_higher = arith.cmpi sge, %first_column, %past_row_block : i32
      %all_there = arith.cmpi sle, %past_column, %past_block : i32
      %all_higher_and_there = arith.andi %all_higher, %all_there : i1
      %counted = scf.if %all_lower -> (tensor<${block_tile}x${column_tile}xf32>) {
        %is_before = arith.cmpf oge, %key, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
        %count = arith.select %is_before, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
        scf.yield %count : tensor<${block_tile}x${column_tile}xf32>
      } else {
        %count = scf.if %all_higher_and_there -> (tensor<${block_tile}x${column_tile}xf32>) {
          %is_before = arith.cmpf ogt, %key, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
          %one_or_none = arith.select %is_before, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          scf.yield %one_or_none : tensor<${block_tile}x${column_tile}xf32>
        } else {
          %column_in_tile = tile.iota 1 : tensor<${block_tile}x${column_tile}xi32>
          %row_in_tile = tile.iota 0 : tensor<${block_tile}xi32>
          %first_block_row = tile.splat %first_block : tensor<${block_tile}xi32>
          %row_block = arith.addi %first_block_row, %row_in_tile : tensor<${block_tile}xi32>
          %row_block_wide = tile.broadcast %row_block : tensor<${block_tile}xi32> -> tensor<${block_tile}x${column_tile}xi32>
          %past_tile = tile.splat %past_block : tensor<${block_tile}x${column_tile}xi32>
          %first_column_tile = tile.splat %first_column : tensor<${block_tile}x${column_tile}xi32>
          %column_block = arith.addi %first_column_tile, %column_in_tile : tensor<${block_tile}x${column_tile}xi32>
          %is_candidate = arith.cmpi slt, %column_block, %past_tile : tensor<${block_tile}x${column_tile}xi32>
          %is_greater = arith.cmpf ogt, %key, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
          %is_equal = arith.cmpf oeq, %key, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
          %is_lower = arith.cmpi slt, %column_block, %row_block_wide : tensor<${block_tile}x${column_tile}xi32>
          %wins_tie = arith.andi %is_equal, %is_lower : tensor<${block_tile}x${column_tile}xi1>
          %wins = arith.ori %is_greater, %wins_tie : tensor<${block_tile}x${column_tile}xi1>
          %is_before = arith.andi %wins, %is_candidate : tensor<${block_tile}x${column_tile}xi1>
          %one_or_none = arith.select %is_before, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          scf.yield %one_or_none : tensor<${block_tile}x${column_tile}xf32>
        }
        scf.yield %count : tensor<${block_tile}x${column_tile}xf32>
      }
      %before_next = arith.addf %before, %counted : tensor<${block_tile}x${column_tile}xf32>
      scf.yield %before_next : tensor<${block_tile}x${column_tile}xf32>
    }
    // Counts below 2^24 are exact as floats.
    %rank = tile.reduce add %before_all : tensor<${block_tile}x${column_tile}xf32> -> tensor<${block_tile}xf32>
    tile.store %rank, %ranks rows(%r) {
      %block = arith.addi %first_block, %r : i32
      %exists = arith.cmpi sle, %block, %own_block : i32
      tile.at [%row_time, %kv_head, %block] if %exists
    } : tensor<${block_tile}xf32>, !tile.view<f32, 3>
  }
  return
}
