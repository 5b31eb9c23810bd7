// The operator `append`: writes new tokens into the cache of a decoding batch (docs/operators.md, "Decode").
// `cache_sequences` has checked that there is room. Each program has one of eight parts of the work for its sequence
// and key/value head:
//   0 to 3  the rows of the selected branch and of the window branch go to their pools.
//   4, 5    the rows for compression go to `staged`, behind the rows that part 6 or 7 writes there. This happens only if
//           a block becomes complete.
//   6, 7    the ring of the last cmp_block rows for compression. The rows that new blocks need go to `staged`, and the
//           newest rows replace the oldest. Token t has place t mod cmp_block. A tile of places is read before it is
//           written, and no other program uses the ring.
// Even parts handle keys, and odd parts handle values. A branch that is off has no tensors.
//
//! template append
//! operator append
//! fixed   dtype, qk_dim, v_dim, cmp_block, cmp_stride, page_size
//! choice  row_tile = 16 | 32 | 64
//! choice  column_tile = 32 | 64 | 128 | 256
//! choice  warps = 1 | 2 | 4
//! require cpu ? warps == 1 : row_tile == 16 * warps
//! let     widest = max(qk_dim, v_dim)
//! require column_tile == 32 || column_tile < 2 * widest
//! let     chunks = ceildiv(widest, column_tile)
// A thread holds the elements that it moves in registers.
//! require cpu || row_tile * column_tile * dtype_bytes / (128 * warps) <= 64
// Few tokens come at a time, and the time of this kernel is mostly latency. So many small programs are best.
//! cost    chunks * 200 + ceildiv(cmp_block, row_tile) * 100 + row_tile
//! grid    ceildiv(max_seqlen_q, row_tile) * chunks * 8, kv_heads, batch
//! threads 32 * warps

func.func @append(
    %k_sel: !tile.view<${element}, 3>, %v_sel: !tile.view<${element}, 3>,
    %k_win: !tile.view<${element}, 3>, %v_win: !tile.view<${element}, 3>,
    %k_cmp: !tile.view<${element}, 3>, %v_cmp: !tile.view<${element}, 3>,
    %k_sel_cache: !tile.view<${element}, 3, ${page_size}>, %v_sel_cache: !tile.view<${element}, 3, ${page_size}>,
    %k_win_cache: !tile.view<${element}, 3, ${page_size}>, %v_win_cache: !tile.view<${element}, 3, ${page_size}>,
    %k_raw: !tile.view<${element}, 3>, %v_raw: !tile.view<${element}, 3>,
    %k_staged: !tile.view<${element}, 3>, %v_staged: !tile.view<${element}, 3>,
    %sequences: !tile.view<i32, 2>, %batch: i32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %four = arith.constant 4 : i32
  %six = arith.constant 6 : i32
  %parts = arith.constant 8 : i32
  %row_tile = arith.constant ${row_tile} : i32
  %chunks = arith.constant ${chunks} : i32
  %column_tile = arith.constant ${column_tile} : i32
  %qk_dim = arith.constant ${qk_dim} : i32
  %v_dim = arith.constant ${v_dim} : i32
  %cmp_block = arith.constant ${cmp_block} : i32

  %program = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %part = arith.remsi %program, %parts : i32
  %rest = arith.divsi %program, %parts : i32
  %chunk = arith.remsi %rest, %chunks : i32
  %row_block = arith.divsi %rest, %chunks : i32

  %pair_place = arith.remsi %part, %two : i32
  %of_keys = arith.cmpi eq, %pair_place, %zero : i32
  %columns = arith.select %of_keys, %qk_dim, %v_dim : i32
  %first_column = arith.muli %chunk, %column_tile : i32
  %has_columns = arith.cmpi slt, %first_column, %columns : i32
  %of_sel = arith.cmpi slt, %part, %two : i32
  %of_branches = arith.cmpi slt, %part, %four : i32
  %of_ring = arith.cmpi sge, %part, %six : i32

  %of_sel_new = arith.select %of_keys, %k_sel, %v_sel : !tile.view<${element}, 3>
  %of_win_new = arith.select %of_keys, %k_win, %v_win : !tile.view<${element}, 3>
  %of_cmp_new = arith.select %of_keys, %k_cmp, %v_cmp : !tile.view<${element}, 3>
  %of_branch_new = arith.select %of_sel, %of_sel_new, %of_win_new : !tile.view<${element}, 3>
  %new = arith.select %of_branches, %of_branch_new, %of_cmp_new : !tile.view<${element}, 3>
  %sel_cache = arith.select %of_keys, %k_sel_cache, %v_sel_cache : !tile.view<${element}, 3, ${page_size}>
  %win_cache = arith.select %of_keys, %k_win_cache, %v_win_cache : !tile.view<${element}, 3, ${page_size}>
  %cache = arith.select %of_sel, %sel_cache, %win_cache : !tile.view<${element}, 3, ${page_size}>
  %raw = arith.select %of_keys, %k_raw, %v_raw : !tile.view<${element}, 3>
  %staged = arith.select %of_keys, %k_staged, %v_staged : !tile.view<${element}, 3>
  %has_new = tile.present %new : !tile.view<${element}, 3>
  %has_cache = tile.present %cache : !tile.view<${element}, 3, ${page_size}>

  %field_q_begin = arith.constant ${sequence_q_begin} : i32
  %field_q_length = arith.constant ${sequence_q_length} : i32
  %field_k_begin = arith.constant ${sequence_k_begin} : i32
  %field_k_length = arith.constant ${sequence_k_length} : i32
  %field_c_length = arith.constant ${sequence_c_length} : i32
  %field_k_entry = arith.constant ${sequence_k_entry} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %q_begin = tile.load_scalar %sequences[%sequence, %field_q_begin] : !tile.view<i32, 2>
  %tokens_new = tile.load_scalar %sequences[%sequence, %field_q_length] : !tile.view<i32, 2>
  %tokens = tile.load_scalar %sequences[%sequence, %field_k_length] : !tile.view<i32, 2>
  %entry = tile.load_scalar %sequences[%sequence, %field_k_entry] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %field_q_entry] : !tile.view<i32, 2>
  %compress_row = arith.addi %batch, %sequence : i32
  %staged_begin = tile.load_scalar %sequences[%compress_row, %field_k_begin] : !tile.view<i32, 2>
  %staged_tokens = tile.load_scalar %sequences[%compress_row, %field_k_length] : !tile.view<i32, 2>
  %new_blocks = tile.load_scalar %sequences[%compress_row, %field_c_length] : !tile.view<i32, 2>
  %before = arith.subi %tokens, %tokens_new : i32
  %first_staged = arith.subi %tokens, %staged_tokens : i32
  %stages = arith.cmpi sgt, %new_blocks, %zero : i32

  %first_row = arith.muli %row_block, %row_tile : i32
  %has_rows = arith.cmpi slt, %first_row, %tokens_new : i32
  %works_here = arith.andi %has_rows, %has_columns : i1
  %works = arith.andi %works_here, %has_new : i1
  scf.if %works {
    scf.if %of_ring {
      // Only the first program works on the ring, on all of its places.
      %is_first = arith.cmpi eq, %row_block, %zero : i32
      %past_place = arith.select %is_first, %cmp_block, %zero : i32
      %newest = arith.subi %tokens, %one : i32
      %newest_before = arith.subi %before, %one : i32
      scf.for %first_place = %zero to %past_place step %row_tile : i32 {
        %old = tile.load %raw rows(%r) {
          //! part ring_old
          tile.at [%sequence, %place, %kv_head] if %exists
        } chunk(%chunk of %columns) : !tile.view<${element}, 3> -> tensor<${row_tile}x${column_tile}x${element}>
        %young = tile.load %new rows(%r) {
          //! part ring_young
          %index = arith.subi %token, %before : i32
          %time = arith.addi %q_begin, %index : i32
          tile.at [%q_entry, %time, %kv_head] if %exists
        } chunk(%chunk of %columns) : !tile.view<${element}, 3> -> tensor<${row_tile}x${column_tile}x${element}>

        tile.store %old, %staged rows(%r) {
          //! part ring_old
          %staged_place = arith.subi %token, %first_staged : i32
          %staged_row = arith.addi %staged_begin, %staged_place : i32
          tile.at [%zero, %staged_row, %kv_head] if %exists
        } chunk(%chunk of %columns) : tensor<${row_tile}x${column_tile}x${element}>, !tile.view<${element}, 3>
        tile.store %young, %raw rows(%r) {
          //! part ring_young
          tile.at [%sequence, %place, %kv_head] if %exists
        } chunk(%chunk of %columns) : tensor<${row_tile}x${column_tile}x${element}>, !tile.view<${element}, 3>
      }
    } else {
      %rows = tile.load %new rows(%r) {
        %index = arith.addi %first_row, %r : i32
        %exists = arith.cmpi slt, %index, %tokens_new : i32
        %time = arith.addi %q_begin, %index : i32
        tile.at [%q_entry, %time, %kv_head] if %exists
      } chunk(%chunk of %columns) : !tile.view<${element}, 3> -> tensor<${row_tile}x${column_tile}x${element}>
      scf.if %of_branches {
        scf.if %has_cache {
          tile.store %rows, %cache rows(%r) {
            %index = arith.addi %first_row, %r : i32
            %exists = arith.cmpi slt, %index, %tokens_new : i32
            %token = arith.addi %before, %index : i32
            tile.at [%entry, %token, %kv_head] if %exists
          } chunk(%chunk of %columns) : tensor<${row_tile}x${column_tile}x${element}>, !tile.view<${element}, 3, ${page_size}>
        }
      } else {
        scf.if %stages {
          %staged_new = arith.subi %before, %first_staged : i32
          %first_staged_row = arith.addi %staged_begin, %staged_new : i32
          tile.store %rows, %staged rows(%r) {
            %index = arith.addi %first_row, %r : i32
            %exists = arith.cmpi slt, %index, %tokens_new : i32
            %staged_row = arith.addi %first_staged_row, %index : i32
            tile.at [%zero, %staged_row, %kv_head] if %exists
          } chunk(%chunk of %columns) : tensor<${row_tile}x${column_tile}x${element}>, !tile.view<${element}, 3>
        }
      }
    }
  }
  return
}
