// The operators `rank` and `choose`: the best selection blocks of a query, for the newest queries of decode, in the
// order of arXiv 2502.11089, equation 11. Each row of a tile is a score. The columns are the scores of its segment. The
// number of scores that come before a row is the row's place, and the row is stored there if that place is kept. Among
// equal scores the lower block comes first. Few queries make too few programs for a list that grows block by block
// (select.mlir). Comparisons can be made in any order, by many programs.
//
// If a query has many blocks, `rank` keeps the best blocks of each segment: a block that is not among the best of its
// segment is not among the best of all. The kept blocks stand segment by segment, and within a segment by place, so
// among equal scores the lower block still comes first. `choose` then does the same with the kept blocks as one
// segment, and its result is the list. With few blocks `choose` takes all scores at once. If a segment has fewer blocks
// than places, the blocks are followed by -1 with a score below all others.
//
//! template rank
//! operator rank, choose
//! fixed   dtype, sel_block, sel_count, segment, many_queries
// The places that `rank` keeps of a segment. It is a multiple of 16, because the columns of a tile begin at a multiple
// of 16.
//! let     slots = roundup(sel_count, 16)
//! let     ranks = op == rank
//! let     kept = ranks ? slots : sel_count
//! let     ranks_kept = op == choose && segment > 0
// `choose` takes all scores of a query as one segment.
//! let     width = ranks ? segment : 1073741824
// `unit` blocks have `unit_scores` scores.
//! let     unit = ranks_kept ? segment : 1
//! let     unit_scores = ranks_kept ? slots : 1
// `part` blocks have `part_rows` rows. Every place that is kept has a row.
//! let     part = segment > 0 ? segment : 1
//! let     part_rows = ranks ? part : unit_scores
//! choice  block_tile = 16 | 32 | 64
//! choice  column_tile = 32 | 64
//! choice  warps = 1 | 2 | 4
// Rows are padded to whole tiles, and a segment consists of whole tiles.
//! require segment == 0 || (segment % block_tile == 0 && segment % column_tile == 0 && segment >= slots)
//! require cpu ? warps == 1 && column_tile == 32 : block_tile % (16 * warps) == 0 && block_tile <= 32 * warps
// A column that is loaded is compared with all rows that the thread holds, so many rows are better. But few queries
// need many programs with few steps.
//! let     wanted = many_queries ? 64 : 32
//! let     wanted_columns = many_queries ? 32 : 64
//! cost    max(block_tile - wanted, wanted - block_tile) + max(warps - 2, 2 - warps) + max(column_tile - wanted_columns, wanted_columns - column_tile)
//! grid    max_seqlen_q * ceildiv(max(ceildiv(ceildiv(max_seqlen_k, sel_block), part) * part_rows, slots), block_tile), kv_heads, batch
//! threads 32 * warps

func.func @rank(
    %scores: !tile.view<f32, 3>, %score_rows: !tile.view<f32, 3>, %score_blocks: !tile.view<i32, 3>,
    %best_scores: !tile.view<f32, 3>, %best_blocks: !tile.view<i32, 3>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %max_seqlen_k: i32)
    attributes {tile.warps = ${warps} : i32} {
  %one = arith.constant 1 : i32
  %ranks = arith.constant ${ranks} : i1
  %ranks_kept = arith.constant ${ranks_kept} : i1
  %sel_block = arith.constant ${sel_block} : i32
  %slots = arith.constant ${slots} : i32
  %kept = arith.constant ${kept} : i32
  %width = arith.constant ${width} : i32
  %unit = arith.constant ${unit} : i32
  %unit_scores = arith.constant ${unit_scores} : i32
  %part = arith.constant ${part} : i32
  %part_rows = arith.constant ${part_rows} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %column_tile = arith.constant ${column_tile} : i32
  %piece_columns = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %one_f = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %program = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %sel_less_one = arith.subi %sel_block, %one : i32
  %part_less_one = arith.subi %part, %one : i32
  %tile_less_one = arith.subi %block_tile, %one : i32
  %keys_rounded = arith.addi %max_seqlen_k, %sel_less_one : i32
  %most_blocks = arith.divsi %keys_rounded, %sel_block : i32
  %most_rounded = arith.addi %most_blocks, %part_less_one : i32
  %most_parts = arith.divsi %most_rounded, %part : i32
  %most_scores = arith.muli %most_parts, %part_rows : i32
  %most_rows = arith.maxsi %most_scores, %slots : i32
  %rows_rounded = arith.addi %most_rows, %tile_less_one : i32
  %tiles = arith.divsi %rows_rounded, %block_tile : i32
  %query = arith.divsi %program, %tiles : i32
  %tile_index = arith.remsi %program, %tiles : i32

  %field_q_begin = arith.constant ${sequence_q_begin} : i32
  %field_q_length = arith.constant ${sequence_q_length} : i32
  %field_k_length = arith.constant ${sequence_k_length} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %q_begin = tile.load_scalar %sequences[%sequence, %field_q_begin] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %field_q_length] : !tile.view<i32, 2>
  %k_length = tile.load_scalar %sequences[%sequence, %field_k_length] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %field_q_entry] : !tile.view<i32, 2>
  %earlier = arith.subi %k_length, %queries : i32
  %position = arith.addi %earlier, %query : i32
  %own_block = arith.divsi %position, %sel_block : i32
  // The scores up to the query's own block, or the scores that `rank` kept of them.
  %unit_rounded = arith.addi %own_block, %unit : i32
  %units = arith.divsi %unit_rounded, %unit : i32
  %past = arith.muli %units, %unit_scores : i32
  %first_row = arith.muli %tile_index, %block_tile : i32
  %segment = arith.divsi %first_row, %width : i32
  %first = arith.muli %segment, %width : i32
  %past_width = arith.addi %first, %width : i32
  %past_segment = arith.minsi %past_width, %past : i32
  %past_slots = arith.addi %first, %slots : i32
  %past_row = arith.maxsi %past_segment, %past_slots : i32
  %has_query = arith.cmpi slt, %query, %queries : i32
  %has_segment = arith.cmpi slt, %first, %past : i32
  %has_rows = arith.cmpi slt, %first_row, %past_row : i32
  %has_scores = arith.andi %has_query, %has_segment : i1
  %works = arith.andi %has_scores, %has_rows : i1
  scf.if %works {
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %time = arith.addi %q_begin, %query : i32
    %row_time = arith.addi %rows_before, %time : i32
    %row_key = tile.load %scores rows(%r) {
      %row = arith.addi %first_row, %r : i32
      %exists = arith.cmpi slt, %row, %past_segment : i32
      tile.at [%row_time, %kv_head, %row] if %exists
    } : !tile.view<f32, 3> -> tensor<${block_tile}xf32>
    %row_in_tile = tile.iota 0 : tensor<${block_tile}xi32>
    %first_row_tile = tile.splat %first_row : tensor<${block_tile}xi32>
    %row_number = arith.addi %first_row_tile, %row_in_tile : tensor<${block_tile}xi32>
    %block = scf.if %ranks_kept -> (tensor<${block_tile}xi32>) {
      %kept_block = tile.load %score_blocks rows(%r) {
        %row = arith.addi %first_row, %r : i32
        %exists = arith.cmpi slt, %row, %past_segment : i32
        tile.at [%row_time, %kv_head, %row] if %exists
      } : !tile.view<i32, 3> -> tensor<${block_tile}xi32>
      scf.yield %kept_block : tensor<${block_tile}xi32>
    } else {
      scf.yield %row_number : tensor<${block_tile}xi32>
    }
    %row_key_wide = tile.broadcast %row_key : tensor<${block_tile}xf32> -> tensor<${block_tile}x${column_tile}xf32>
    %ones = tile.splat %one_f : tensor<${block_tile}x${column_tile}xf32>
    %nothing = tile.splat %zero_f : tensor<${block_tile}x${column_tile}xf32>
    %past_tile_row = arith.addi %first_row, %block_tile : i32
    %before_all = scf.for %first_column = %first to %past_segment step %column_tile
        iter_args(%before = %nothing) -> (tensor<${block_tile}x${column_tile}xf32>) : i32 {
      // All rows are equal. Memory behind the last score may hold anything.
      %piece = arith.divsi %first_column, %piece_columns : i32
      %key = tile.load %score_rows rows(%r) {
        %exists = arith.constant true
        tile.at [%row_time, %kv_head, %piece] if %exists
      } columns(${column_tile}) : !tile.view<f32, 3> -> tensor<${block_tile}x${column_tile}xf32>

      // Columns that are all lower blocks than the rows win every tie. Columns that are all higher blocks win no tie.
      %past_column = arith.addi %first_column, %column_tile : i32
      %all_lower = arith.cmpi sle, %past_column, %first_row : i32
      %all_higher = arith.cmpi sge, %first_column, %past_tile_row : i32
      %all_there = arith.cmpi sle, %past_column, %past_segment : i32
      %all_higher_and_there = arith.andi %all_higher, %all_there : i1
      %before_next = scf.if %all_lower -> (tensor<${block_tile}x${column_tile}xf32>) {
        %is_before = arith.cmpf oge, %key, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
        %one_or_none = arith.select %is_before, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
        %count = arith.addf %before, %one_or_none : tensor<${block_tile}x${column_tile}xf32>
        scf.yield %count : tensor<${block_tile}x${column_tile}xf32>
      } else {
        %count = scf.if %all_higher_and_there -> (tensor<${block_tile}x${column_tile}xf32>) {
          %is_before = arith.cmpf ogt, %key, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
          %one_or_none = arith.select %is_before, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          %counted = arith.addf %before, %one_or_none : tensor<${block_tile}x${column_tile}xf32>
          scf.yield %counted : tensor<${block_tile}x${column_tile}xf32>
        } else {
          // A column behind the last score comes before no row.
          %column_in_tile = tile.iota 1 : tensor<${block_tile}x${column_tile}xi32>
          %row_wide = tile.broadcast %row_number : tensor<${block_tile}xi32> -> tensor<${block_tile}x${column_tile}xi32>
          %past_tile = tile.splat %past_segment : tensor<${block_tile}x${column_tile}xi32>
          %first_column_tile = tile.splat %first_column : tensor<${block_tile}x${column_tile}xi32>
          %lowest_tile = tile.splat %minus_inf : tensor<${block_tile}x${column_tile}xf32>
          %column = arith.addi %first_column_tile, %column_in_tile : tensor<${block_tile}x${column_tile}xi32>
          %is_there = arith.cmpi slt, %column, %past_tile : tensor<${block_tile}x${column_tile}xi32>
          %key_there = arith.select %is_there, %key, %lowest_tile : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          %is_lower = arith.cmpi slt, %column, %row_wide : tensor<${block_tile}x${column_tile}xi32>
          %is_not_below = arith.cmpf oge, %key_there, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
          %is_above = arith.cmpf ogt, %key_there, %row_key_wide : tensor<${block_tile}x${column_tile}xf32>
          %not_below_or_none = arith.select %is_not_below, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          %above_or_none = arith.select %is_above, %ones, %nothing : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          %one_or_none = arith.select %is_lower, %not_below_or_none, %above_or_none : tensor<${block_tile}x${column_tile}xi1>, tensor<${block_tile}x${column_tile}xf32>
          %counted = arith.addf %before, %one_or_none : tensor<${block_tile}x${column_tile}xf32>
          scf.yield %counted : tensor<${block_tile}x${column_tile}xf32>
        }
        scf.yield %count : tensor<${block_tile}x${column_tile}xf32>
      }
      scf.yield %before_next : tensor<${block_tile}x${column_tile}xf32>
    }
    // Counts below 2^24 are exact as floats. Rows behind the last score keep their own order behind it.
    %before_float = tile.reduce add %before_all : tensor<${block_tile}x${column_tile}xf32> -> tensor<${block_tile}xf32>
    %before_count = arith.fptosi %before_float : tensor<${block_tile}xf32> to tensor<${block_tile}xi32>
    %past_segment_row = tile.splat %past_segment : tensor<${block_tile}xi32>
    %first_in_segment = tile.splat %first : tensor<${block_tile}xi32>
    %own_place = arith.subi %row_number, %first_in_segment : tensor<${block_tile}xi32>
    %none = arith.constant dense<-1> : tensor<${block_tile}xi32>
    %lowest = arith.constant dense<0xFF800000> : tensor<${block_tile}xf32>
    %is_score = arith.cmpi slt, %row_number, %past_segment_row : tensor<${block_tile}xi32>
    %places = arith.select %is_score, %before_count, %own_place : tensor<${block_tile}xi1>, tensor<${block_tile}xi32>
    %listed = arith.select %is_score, %block, %none : tensor<${block_tile}xi1>, tensor<${block_tile}xi32>
    %first_kept = arith.muli %segment, %slots : i32
    tile.store %listed, %best_blocks rows(%r, %place of %places : tensor<${block_tile}xi32>) {
      %is_kept = arith.cmpi slt, %place, %kept : i32
      %slot = arith.addi %first_kept, %place : i32
      tile.at [%row_time, %kv_head, %slot] if %is_kept
    } : tensor<${block_tile}xi32>, !tile.view<i32, 3>
    scf.if %ranks {
      %score = arith.select %is_score, %row_key, %lowest : tensor<${block_tile}xi1>, tensor<${block_tile}xf32>
      tile.store %score, %best_scores rows(%r, %place of %places : tensor<${block_tile}xi32>) {
        %is_kept = arith.cmpi slt, %place, %kept : i32
        %slot = arith.addi %first_kept, %place : i32
        tile.at [%row_time, %kv_head, %slot] if %is_kept
      } : tensor<${block_tile}xf32>, !tile.view<f32, 3>
    }
  }
  return
}
