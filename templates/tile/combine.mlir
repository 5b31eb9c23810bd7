// The operator `combine`: the sum of the branches of Native Sparse Attention, each times its gate. The rows of a tile
// are pairs of a query and a head of the group, heads fastest, as in attention.mlir. A branch that is off has no tensor
// and adds nothing. A gate of NaN, and zero times NaN, follow IEEE 754. Arithmetic is f32 and rounds once.
//
//! template combine
//! operator combine
//! fixed   dtype, v_dim, group, packed, gate, gate_per_group
//! let     gate_sigmoid = gate == sigmoid
//! let     gate_softmax = gate == softmax
//! choice  row_tile = 16 | 32 | 64 | 128
//! choice  column_tile = 32 | 64 | 128 | 256
//! choice  warps = 1 | 2 | 4 | 8
//! require cpu ? warps == 1 : row_tile % (16 * warps) == 0 && row_tile <= 32 * warps
// A tile holds a chunk of the columns. Chunks of which half or more would be padding are excluded, except for the
// narrowest chunk.
//! require column_tile == 32 || column_tile < 2 * v_dim
// Registers of a GPU thread: the sum in f32 and one branch.
//! let     registers = row_tile * column_tile * (4 + dtype_bytes) / (128 * warps)
//! require cpu || registers <= 160
// This kernel waits for memory most of the time. On a GPU, many warps that each hold little keep the most bytes under
// way: a chunk and a branch at a time. A partly filled chunk moves in small pieces. On a CPU a tile has a fixed cost
// and should stay in the cache.
//! let     chunks = ceildiv(v_dim, column_tile)
//! let     gpu_cost = chunks * (column_tile + 64) + (v_dim % column_tile ? 200 : 0) + registers / 2 + 8 * max(warps - 4, 4 - warps)
//! let     cpu_cost = chunks * (column_tile * 64 + 100000 / row_tile) + max(0, row_tile * column_tile - 4096) / 8
//! cost    cpu ? cpu_cost : gpu_cost
//! grid    ceildiv(max_seqlen_q * group, row_tile), kv_heads, batch
//! threads 32 * warps

func.func @combine(
    %o_cmp: !tile.view<${element}, 3>, %o_sel: !tile.view<${element}, 3>, %o_win: !tile.view<${element}, 3>,
    %gates: !tile.view<${element}, 4>, %out: !tile.view<${element}, 3>,
    %reads_cmp: !tile.view<i32, 3>, %reads_sel: !tile.view<i32, 3>, %reads_win: !tile.view<i32, 3>, %reads: !tile.view<i32, 3>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %total_q: i32, %query_begin: i32, %query_end: i32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %packed = arith.constant ${packed} : i1
  %gate_per_group = arith.constant ${gate_per_group} : i1
  %gate_sigmoid = arith.constant ${gate_sigmoid} : i1
  %gate_softmax = arith.constant ${gate_softmax} : i1
  %group = arith.constant ${group} : i32
  %row_tile = arith.constant ${row_tile} : i32
  %column_tile = arith.constant ${column_tile} : i32
  %v_dim = arith.constant ${v_dim} : i32
  %zero_f = arith.constant 0.0 : f32

  %block = tile.program_id x
  %kv_head = tile.program_id y
  %batch = tile.program_id z

  // Where this sequence lies. Without a table, a packed tensor is one sequence. The table holds a malformed sequence as
  // one without queries.
  %has_table = tile.present %sequences : !tile.view<i32, 2>
  %entry, %q_begin, %q_length = scf.if %has_table -> (i32, i32, i32) {
    %field_q_begin = arith.constant ${sequence_q_begin} : i32
    %field_q_length = arith.constant ${sequence_q_length} : i32
    %field_q_entry = arith.constant ${sequence_q_entry} : i32
    %table_entry = tile.load_scalar %sequences[%batch, %field_q_entry] : !tile.view<i32, 2>
    %table_begin = tile.load_scalar %sequences[%batch, %field_q_begin] : !tile.view<i32, 2>
    %table_length = tile.load_scalar %sequences[%batch, %field_q_length] : !tile.view<i32, 2>
    scf.yield %table_entry, %table_begin, %table_length : i32, i32, i32
  } else {
    %all = arith.select %packed, %total_q, %seqlen_q : i32
    scf.yield %batch, %zero, %all : i32, i32, i32
  }

  // The queries of this sequence that the launch computes: `queries` queries from time `first_time` on.
  //! part launch_queries
  %first_row = arith.muli %block, %row_tile : i32
  %has_rows = arith.cmpi slt, %first_row, %rows : i32
  scf.if %has_rows {
    %first_head = arith.muli %kv_head, %group : i32

    %gate_0 = tile.load %gates rows(%r) {
      //! part group_row
      %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
      tile.at [%entry, %time, %gate_head, %zero] if %exists
    } : !tile.view<${element}, 4> -> tensor<${row_tile}x${element}>
    %gate_1 = tile.load %gates rows(%r) {
      //! part group_row
      %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
      tile.at [%entry, %time, %gate_head, %one] if %exists
    } : !tile.view<${element}, 4> -> tensor<${row_tile}x${element}>
    %gate_2 = tile.load %gates rows(%r) {
      //! part group_row
      %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
      tile.at [%entry, %time, %gate_head, %two] if %exists
    } : !tile.view<${element}, 4> -> tensor<${row_tile}x${element}>
    //! part gates rows=${row_tile}

    %nothing = tile.splat %zero_f : tensor<${row_tile}x${column_tile}xf32>
    %v_dim_less_one = arith.subi %v_dim, %one : i32
    %last_chunk = arith.divsi %v_dim_less_one, %column_tile : i32
    %chunks = arith.addi %last_chunk, %one : i32
    scf.for %chunk = %zero to %chunks step %one : i32 {
      %sum_all = scf.for %branch = %zero to %three step %one
          iter_args(%sum = %nothing) -> (tensor<${row_tile}x${column_tile}xf32>) : i32 {
        %is_cmp = arith.cmpi eq, %branch, %zero : i32
        %is_sel = arith.cmpi eq, %branch, %one : i32
        %o_sel_or_win = arith.select %is_sel, %o_sel, %o_win : !tile.view<${element}, 3>
        %o = arith.select %is_cmp, %o_cmp, %o_sel_or_win : !tile.view<${element}, 3>
        %is_there = tile.present %o : !tile.view<${element}, 3>
        %sum_next = scf.if %is_there -> (tensor<${row_tile}x${column_tile}xf32>) {
          %o_tile = tile.load %o rows(%r) {
            //! part group_row
            tile.at [%entry, %time, %head] if %exists
          } chunk(%chunk of %v_dim) : !tile.view<${element}, 3> -> tensor<${row_tile}x${column_tile}x${element}>
          %is_cmp_row = tile.splat %is_cmp : tensor<${row_tile}xi1>
          %is_sel_row = tile.splat %is_sel : tensor<${row_tile}xi1>
          %g_sel_or_win = arith.select %is_sel_row, %g_sel, %g_win : tensor<${row_tile}xi1>, tensor<${row_tile}xf32>
          %g = arith.select %is_cmp_row, %g_cmp, %g_sel_or_win : tensor<${row_tile}xi1>, tensor<${row_tile}xf32>
          %g_wide = tile.broadcast %g : tensor<${row_tile}xf32> -> tensor<${row_tile}x${column_tile}xf32>
          %o_wide = tile.cast %o_tile : tensor<${row_tile}x${column_tile}x${element}> -> tensor<${row_tile}x${column_tile}xf32>
          %added = math.fma %g_wide, %o_wide, %sum : tensor<${row_tile}x${column_tile}xf32>
          scf.yield %added : tensor<${row_tile}x${column_tile}xf32>
        } else {
          scf.yield %sum : tensor<${row_tile}x${column_tile}xf32>
        }
        scf.yield %sum_next : tensor<${row_tile}x${column_tile}xf32>
      }
      %out_tile = tile.cast %sum_all : tensor<${row_tile}x${column_tile}xf32> -> tensor<${row_tile}x${column_tile}x${element}>
      tile.store %out_tile, %out rows(%r) {
        //! part group_row
        tile.at [%entry, %time, %head] if %exists
      } chunk(%chunk of %v_dim) : tensor<${row_tile}x${column_tile}x${element}>, !tile.view<${element}, 3>
    }

    // The number of keys that the branches read for a query. All heads of a group read the same keys, so the row of the
    // group's first head writes it.
    %wants_reads = tile.present %reads : !tile.view<i32, 3>
    scf.if %wants_reads {
      %no_read = tile.splat %zero : tensor<${row_tile}xi32>
      %read_all = scf.for %branch = %zero to %three step %one iter_args(%read = %no_read) -> (tensor<${row_tile}xi32>) : i32 {
        %is_cmp = arith.cmpi eq, %branch, %zero : i32
        %is_sel = arith.cmpi eq, %branch, %one : i32
        %reads_sel_or_win = arith.select %is_sel, %reads_sel, %reads_win : !tile.view<i32, 3>
        %branch_reads = arith.select %is_cmp, %reads_cmp, %reads_sel_or_win : !tile.view<i32, 3>
        %is_there = tile.present %branch_reads : !tile.view<i32, 3>
        %branch_read = tile.load %branch_reads rows(%r) {
          %row = arith.addi %first_row, %r : i32
          %is_row = arith.cmpi slt, %row, %rows : i32
          %query = arith.divsi %row, %group : i32
          %time = arith.addi %first_time, %query : i32
          %member = arith.remsi %row, %group : i32
          %is_first_head = arith.cmpi eq, %member, %zero : i32
          %tells = arith.andi %is_row, %is_first_head : i1
          %exists = arith.andi %tells, %is_there : i1
          tile.at [%entry, %time, %kv_head] if %exists
        } : !tile.view<i32, 3> -> tensor<${row_tile}xi32>
        %read_next = arith.addi %read, %branch_read : tensor<${row_tile}xi32>
        scf.yield %read_next : tensor<${row_tile}xi32>
      }
      tile.store %read_all, %reads rows(%r) {
        //! part group_first_row
        tile.at [%entry, %time, %kv_head] if %exists
      } : tensor<${row_tile}xi32>, !tile.view<i32, 3>
    }
  }
  return
}
