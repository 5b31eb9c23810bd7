// The operator `ascend`: writes the list that `choose` made in ascending order, with -1 behind the last block, as
// callers expect it. Each slot takes the least block above the block of the slot before.
//
//! template ascend
//! operator ascend
//! fixed   dtype, sel_block, sel_count
//! let     slots = roundup(sel_count, 16)
//! choice  rows = 16
//! cost    0
//! grid    max_seqlen_q, kv_heads, batch
//! threads 32

func.func @ascend(
    %choice_rows: !tile.view<i32, 2>, %block_list: !tile.view<i32, 4>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32)
    attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sel_count = arith.constant ${sel_count} : i32
  %minus_inf = arith.constant 0xFF800000 : f32

  %query = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %field_q_begin = arith.constant ${sequence_q_begin} : i32
  %field_q_length = arith.constant ${sequence_q_length} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %q_begin = tile.load_scalar %sequences[%sequence, %field_q_begin] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %field_q_length] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %field_q_entry] : !tile.view<i32, 2>
  %has_query = arith.cmpi slt, %query, %queries : i32
  scf.if %has_query {
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %time = arith.addi %q_begin, %query : i32
    %row_time = arith.addi %rows_before, %time : i32

    // All rows are equal. The reduction has only a maximum: the negated greatest of the negated blocks is the least
    // block.
    %blocks = tile.load %choice_rows rows(%r) {
      %exists = arith.constant true
      tile.at [%row_time, %kv_head] if %exists
    } columns(${sel_count}) : !tile.view<i32, 2> -> tensor<${rows}x${slots}xi32>
    %blocks_float = arith.sitofp %blocks : tensor<${rows}x${slots}xi32> to tensor<${rows}x${slots}xf32>
    %column = tile.iota 1 : tensor<${rows}x${slots}xi32>
    %sel_count_tile = tile.splat %sel_count : tensor<${rows}x${slots}xi32>
    %is_slot = arith.cmpi slt, %column, %sel_count_tile : tensor<${rows}x${slots}xi32>
    %minus_inf_tile = tile.splat %minus_inf : tensor<${rows}x${slots}xf32>
    %minus_inf_row = tile.splat %minus_inf : tensor<${rows}xf32>
    %none = arith.constant dense<-1.0> : tensor<${rows}xf32>
    %infinity_row = arith.constant dense<0x7F800000> : tensor<${rows}xf32>
    %last = scf.for %slot = %zero to %sel_count step %one
        iter_args(%previous = %none) -> (tensor<${rows}xf32>) : i32 {
      %previous_wide = tile.broadcast %previous : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
      %is_above = arith.cmpf ogt, %blocks_float, %previous_wide : tensor<${rows}x${slots}xf32>
      %is_left = arith.andi %is_above, %is_slot : tensor<${rows}x${slots}xi1>
      %negated = arith.negf %blocks_float : tensor<${rows}x${slots}xf32>
      %left = arith.select %is_left, %negated, %minus_inf_tile : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
      %greatest = tile.reduce max %left : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
      %is_over = arith.cmpf oeq, %greatest, %minus_inf_row : tensor<${rows}xf32>
      %least = arith.negf %greatest : tensor<${rows}xf32>
      %shown = arith.select %is_over, %none, %least : tensor<${rows}xi1>, tensor<${rows}xf32>
      %next = arith.select %is_over, %infinity_row, %least : tensor<${rows}xi1>, tensor<${rows}xf32>
      %listed = arith.fptosi %shown : tensor<${rows}xf32> to tensor<${rows}xi32>
      tile.store %listed, %block_list rows(%r) {
        %is_first = arith.cmpi eq, %r, %zero : i32
        tile.at [%q_entry, %time, %kv_head, %slot] if %is_first
      } : tensor<${rows}xi32>, !tile.view<i32, 4>
      scf.yield %next : tensor<${rows}xf32>
    }
  }
  return
}
