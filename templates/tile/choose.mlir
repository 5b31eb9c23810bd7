// The blocks of the first ranks (rank.mlir), for the newest queries of decode: the operator `choose`. Rows of a tile are
// slots of the list, its columns blocks; a slot's block is the one of that rank. So the list stands in the order of
// scores; `ascend` puts it into that of blocks for who wants to see it. Behind the last block it holds -1.
//
//! template choose
//! operator choose
//! fixed   dtype, sel_block, sel_count
//! let     slots = roundup(sel_count, 16)
//! choice  column_tile = 32 | 64 | 128
//! choice  warps = 1 | 2 | 4
//! require cpu ? warps == 1 && column_tile == 32 : column_tile * slots <= 4096 * warps && slots % (16 * warps) == 0 && slots <= 32 * warps
//! cost    10 * warps + 128 - column_tile
//! grid    max_seqlen_q, kv_heads, batch
//! threads 32 * warps

func.func @choose(
    %rank_rows: !tile.view<f32, 3>, %choice: !tile.view<i32, 3>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32)
    attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %seven = arith.constant 7 : i32
  %sel_block = arith.constant ${sel_block} : i32
  %sel_count = arith.constant ${sel_count} : i32
  %column_tile = arith.constant ${column_tile} : i32
  %piece_columns = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32

  %query = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %q_begin = tile.load_scalar %sequences[%sequence, %zero] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %one] : !tile.view<i32, 2>
  %k_length = tile.load_scalar %sequences[%sequence, %three] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %seven] : !tile.view<i32, 2>
  %has_query = arith.cmpi slt, %query, %queries : i32
  scf.if %has_query {
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %time = arith.addi %q_begin, %query : i32
    %row_time = arith.addi %rows_before, %time : i32
    %earlier = arith.subi %k_length, %queries : i32
    %position = arith.addi %earlier, %query : i32
    %own_block = arith.divsi %position, %sel_block : i32
    %past_block = arith.addi %own_block, %one : i32

    %slot = tile.iota 0 : tensor<${slots}xi32>
    %slot_float = arith.sitofp %slot : tensor<${slots}xi32> to tensor<${slots}xf32>
    %slot_wide = tile.broadcast %slot_float : tensor<${slots}xf32> -> tensor<${slots}x${column_tile}xf32>
    %column_in_tile = tile.iota 1 : tensor<${slots}x${column_tile}xi32>
    %nothing = tile.splat %zero_f : tensor<${slots}x${column_tile}xf32>
    %past_tile = tile.splat %past_block : tensor<${slots}x${column_tile}xi32>
    %found = scf.for %first_column = %zero to %past_block step %column_tile
        iter_args(%sum = %nothing) -> (tensor<${slots}x${column_tile}xf32>) : i32 {
      // All rows are the same. What stands behind the last block may be anything.
      %piece = arith.divsi %first_column, %piece_columns : i32
      %ranks = tile.load %rank_rows rows(%r) {
        %exists = arith.constant true
        tile.at [%row_time, %kv_head, %piece] if %exists
      } columns(${column_tile}) : !tile.view<f32, 3> -> tensor<${slots}x${column_tile}xf32>
      %first_column_tile = tile.splat %first_column : tensor<${slots}x${column_tile}xi32>
      %block = arith.addi %first_column_tile, %column_in_tile : tensor<${slots}x${column_tile}xi32>
      %is_candidate = arith.cmpi slt, %block, %past_tile : tensor<${slots}x${column_tile}xi32>
      %has_rank = arith.cmpf oeq, %ranks, %slot_wide : tensor<${slots}x${column_tile}xf32>
      %is_it = arith.andi %has_rank, %is_candidate : tensor<${slots}x${column_tile}xi1>
      %block_float = arith.sitofp %block : tensor<${slots}x${column_tile}xi32> to tensor<${slots}x${column_tile}xf32>
      %added = arith.select %is_it, %block_float, %nothing : tensor<${slots}x${column_tile}xi1>, tensor<${slots}x${column_tile}xf32>
      %sum_next = arith.addf %sum, %added : tensor<${slots}x${column_tile}xf32>
      scf.yield %sum_next : tensor<${slots}x${column_tile}xf32>
    }
    // One number and zeros: below 2^24 it is exact as a float.
    %chosen_float = tile.reduce add %found : tensor<${slots}x${column_tile}xf32> -> tensor<${slots}xf32>
    %chosen = arith.fptosi %chosen_float : tensor<${slots}xf32> to tensor<${slots}xi32>
    %past_row = tile.splat %past_block : tensor<${slots}xi32>
    %none_row = arith.constant dense<-1> : tensor<${slots}xi32>
    %is_filled = arith.cmpi slt, %slot, %past_row : tensor<${slots}xi32>
    %listed = arith.select %is_filled, %chosen, %none_row : tensor<${slots}xi1>, tensor<${slots}xi32>
    tile.store %listed, %choice rows(%r) {
      %exists = arith.cmpi slt, %r, %sel_count : i32
      tile.at [%row_time, %kv_head, %r] if %exists
    } : tensor<${slots}xi32>, !tile.view<i32, 3>
  }
  return
}
