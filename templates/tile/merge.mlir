// The operator `merge`: adds up the results of the splits of decode's branches, and weights the branches with their
// gates. The rows of a tile are heads of a group, and its columns are a chunk of the head's columns. The row of each
// split is added with a weight that follows from its log-sum-exp and from the gate of its branch. Logarithms are in
// base 2.
//
//! template merge
//! operator merge
//! fixed   dtype, v_dim, group, gate, gate_per_group, slots
//! let     gate_sigmoid = gate == sigmoid
//! let     gate_softmax = gate == softmax
//! choice  rows = 16
//! choice  column_tile = 16 | 32 | 64 | 128
//! require column_tile == 16 || column_tile < 2 * v_dim
// The tiles of four splits are in registers at the same time as the sum.
//! require cpu || column_tile <= 64
//! let     head_tiles = ceildiv(group, rows)
//! let     chunks = ceildiv(v_dim, column_tile)
// A plan with many slots has few queries, and needs narrow chunks for many programs. A plan with few slots has many
// queries.
//! let     wanted = cpu ? 128 : slots == 16 ? 32 : 16
//! cost    max(column_tile - wanted, wanted - column_tile)
//! grid    max_seqlen_q * head_tiles * chunks, kv_heads, batch
//! threads 32

func.func @merge(
    %o_slots: !tile.view<f32, 3>, %lse_split: !tile.view<f32, 3>, %lse_slots: !tile.view<f32, 2>,
    %reads_slots: !tile.view<i32, 2>,
    %gates: !tile.view<${element}, 4>, %out: !tile.view<${element}, 3>,
    %o_cmp: !tile.view<${element}, 3>, %o_sel: !tile.view<${element}, 3>, %o_win: !tile.view<${element}, 3>,
    %lse_cmp: !tile.view<f32, 3>, %lse_sel: !tile.view<f32, 3>, %lse_win: !tile.view<f32, 3>,
    %reads: !tile.view<i32, 3>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32,
    %past_cmp_split: i32, %past_sel_split: i32, %past_win_split: i32) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %four = arith.constant 4 : i32
  %group = arith.constant ${group} : i32
  %rows = arith.constant ${rows} : i32
  %head_tiles = arith.constant ${head_tiles} : i32
  %chunks = arith.constant ${chunks} : i32
  %v_dim = arith.constant ${v_dim} : i32
  %gate_per_group = arith.constant ${gate_per_group} : i1
  %gate_sigmoid = arith.constant ${gate_sigmoid} : i1
  %gate_softmax = arith.constant ${gate_softmax} : i1
  %zero_f = arith.constant 0.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %program = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %chunk = arith.remsi %program, %chunks : i32
  %rest = arith.divsi %program, %chunks : i32
  %head_tile = arith.remsi %rest, %head_tiles : i32
  %query = arith.divsi %rest, %head_tiles : i32
  %first_member = arith.muli %head_tile, %rows : i32
  %members = arith.subi %group, %first_member : i32
  %group_first = arith.muli %kv_head, %group : i32
  %first_head = arith.addi %group_first, %first_member : i32

  %field_q_begin = arith.constant ${sequence_q_begin} : i32
  %field_q_length = arith.constant ${sequence_q_length} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %q_begin = tile.load_scalar %sequences[%sequence, %field_q_begin] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %field_q_length] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %field_q_entry] : !tile.view<i32, 2>
  %has_query = arith.cmpi slt, %query, %queries : i32
  scf.if %has_query {
    %time = arith.addi %q_begin, %query : i32
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %row_time = arith.addi %rows_before, %time : i32

    // Rows behind the last head of the group are zero and are not stored.
    %gate_0 = tile.load %gates rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
      tile.at [%q_entry, %time, %gate_head, %zero] if %exists
    } : !tile.view<${element}, 4> -> tensor<${rows}x${element}>
    %gate_1 = tile.load %gates rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
      tile.at [%q_entry, %time, %gate_head, %one] if %exists
    } : !tile.view<${element}, 4> -> tensor<${rows}x${element}>
    %gate_2 = tile.load %gates rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
      tile.at [%q_entry, %time, %gate_head, %two] if %exists
    } : !tile.view<${element}, 4> -> tensor<${rows}x${element}>
    %lse = tile.load %lse_slots rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%row_time, %head] if %exists
    } columns(${slots}) : !tile.view<f32, 2> -> tensor<${rows}x${slots}xf32>
    //! part gates

    // The branch that each split belongs to.
    %split = tile.iota 1 : tensor<${rows}x${slots}xi32>
    %past_cmp = tile.splat %past_cmp_split : tensor<${rows}x${slots}xi32>
    %past_sel = tile.splat %past_sel_split : tensor<${rows}x${slots}xi32>
    %past_win = tile.splat %past_win_split : tensor<${rows}x${slots}xi32>
    %is_cmp = arith.cmpi slt, %split, %past_cmp : tensor<${rows}x${slots}xi32>
    %is_cmp_or_sel = arith.cmpi slt, %split, %past_sel : tensor<${rows}x${slots}xi32>
    %is_slot = arith.cmpi slt, %split, %past_win : tensor<${rows}x${slots}xi32>
    %minus_inf_tile = tile.splat %minus_inf : tensor<${rows}x${slots}xf32>
    %nothing = tile.splat %zero_f : tensor<${rows}x${slots}xf32>
    %minus_inf_row = tile.splat %minus_inf : tensor<${rows}xf32>
    %zero_row = tile.splat %zero_f : tensor<${rows}xf32>
    %lse_there = arith.select %is_slot, %lse, %minus_inf_tile : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>

    // The greatest log-sum-exp of each branch, replaced by 0 if it is -inf so that the weights are numbers; and for
    // each split the greatest log-sum-exp of its own branch.
    %lse_of_cmp = arith.select %is_cmp, %lse_there, %minus_inf_tile : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %not_cmp = arith.select %is_cmp, %minus_inf_tile, %lse_there : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %lse_of_sel = arith.select %is_cmp_or_sel, %not_cmp, %minus_inf_tile : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %lse_of_win = arith.select %is_cmp_or_sel, %minus_inf_tile, %lse_there : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %m_cmp = tile.reduce max %lse_of_cmp : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
    %m_sel = tile.reduce max %lse_of_sel : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
    %m_win = tile.reduce max %lse_of_win : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
    %m_cmp_empty = arith.cmpf oeq, %m_cmp, %minus_inf_row : tensor<${rows}xf32>
    %m_sel_empty = arith.cmpf oeq, %m_sel, %minus_inf_row : tensor<${rows}xf32>
    %m_win_empty = arith.cmpf oeq, %m_win, %minus_inf_row : tensor<${rows}xf32>
    %m_cmp_finite = arith.select %m_cmp_empty, %zero_row, %m_cmp : tensor<${rows}xi1>, tensor<${rows}xf32>
    %m_sel_finite = arith.select %m_sel_empty, %zero_row, %m_sel : tensor<${rows}xi1>, tensor<${rows}xf32>
    %m_win_finite = arith.select %m_win_empty, %zero_row, %m_win : tensor<${rows}xi1>, tensor<${rows}xf32>
    %m_cmp_wide = tile.broadcast %m_cmp_finite : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
    %m_sel_wide = tile.broadcast %m_sel_finite : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
    %m_win_wide = tile.broadcast %m_win_finite : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
    %m_sel_or_win = arith.select %is_cmp_or_sel, %m_sel_wide, %m_win_wide : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %m = arith.select %is_cmp, %m_cmp_wide, %m_sel_or_win : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %lse_below = arith.subf %lse_there, %m : tensor<${rows}x${slots}xf32>
    %share = math.exp2 %lse_below : tensor<${rows}x${slots}xf32>
    %share_of_cmp = arith.select %is_cmp, %share, %nothing : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %share_past_cmp = arith.select %is_cmp, %nothing, %share : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %share_of_sel = arith.select %is_cmp_or_sel, %share_past_cmp, %nothing : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %share_of_win = arith.select %is_cmp_or_sel, %nothing, %share : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %l_cmp = tile.reduce add %share_of_cmp : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
    %l_sel = tile.reduce add %share_of_sel : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
    %l_win = tile.reduce add %share_of_win : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
    %inverse_cmp = arith.divf %one_row, %l_cmp : tensor<${rows}xf32>
    %inverse_sel = arith.divf %one_row, %l_sel : tensor<${rows}xf32>
    %inverse_win = arith.divf %one_row, %l_win : tensor<${rows}xf32>
    %l_cmp_zero = arith.cmpf oeq, %l_cmp, %zero_row : tensor<${rows}xf32>
    %norm_cmp = arith.select %l_cmp_zero, %zero_row, %inverse_cmp : tensor<${rows}xi1>, tensor<${rows}xf32>
    %l_sel_zero = arith.cmpf oeq, %l_sel, %zero_row : tensor<${rows}xf32>
    %norm_sel = arith.select %l_sel_zero, %zero_row, %inverse_sel : tensor<${rows}xi1>, tensor<${rows}xf32>
    %l_win_zero = arith.cmpf oeq, %l_win, %zero_row : tensor<${rows}xf32>
    %norm_win = arith.select %l_win_zero, %zero_row, %inverse_win : tensor<${rows}xi1>, tensor<${rows}xf32>

    %gated_cmp = arith.mulf %g_cmp, %norm_cmp : tensor<${rows}xf32>
    %gated_sel = arith.mulf %g_sel, %norm_sel : tensor<${rows}xf32>
    %gated_win = arith.mulf %g_win, %norm_win : tensor<${rows}xf32>
    // Four splits are loaded at once, because each load waits for memory.
    %no_sum = tile.splat %zero_f : tensor<${rows}x${column_tile}xf32>
    %sum_all = scf.for %first_split = %zero to %past_win_split step %four
        iter_args(%sum = %no_sum) -> (tensor<${rows}x${column_tile}xf32>) : i32 {
      //! part merge_load n=0 offset=zero
      //! part merge_load n=1 offset=one
      //! part merge_load n=2 offset=two
      //! part merge_load n=3 offset=three
      //! part merge_add n=0 before=sum
      //! part merge_add n=1 before=sum_0
      //! part merge_add n=2 before=sum_1
      //! part merge_add n=3 before=sum_2
      scf.yield %sum_3 : tensor<${rows}x${column_tile}xf32>
    }
    %result = tile.cast %sum_all : tensor<${rows}x${column_tile}xf32> -> tensor<${rows}x${column_tile}x${element}>
    tile.store %result, %out rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%q_entry, %time, %head] if %exists
    } chunk(%chunk of %v_dim) : tensor<${rows}x${column_tile}x${element}>, !tile.view<${element}, 3>

    // The results of single branches, for callers who ask for them. A value of one branch, NaN included, must not reach
    // another branch. A split without weight holds zeros and adds nothing.
    scf.for %branch = %zero to %three step %one : i32 {
      %of_cmp = arith.cmpi eq, %branch, %zero : i32
      %of_sel = arith.cmpi eq, %branch, %one : i32
      %o_sel_or_win = arith.select %of_sel, %o_sel, %o_win : !tile.view<${element}, 3>
      %o_branch = arith.select %of_cmp, %o_cmp, %o_sel_or_win : !tile.view<${element}, 3>
      %wants_branch = tile.present %o_branch : !tile.view<${element}, 3>
      scf.if %wants_branch {
        %past_before_win = arith.select %of_sel, %past_cmp_split, %past_sel_split : i32
        %first_of_branch = arith.select %of_cmp, %zero, %past_before_win : i32
        %past_sel_or_win = arith.select %of_sel, %past_sel_split, %past_win_split : i32
        %past_of_branch = arith.select %of_cmp, %past_cmp_split, %past_sel_or_win : i32
        %of_cmp_row = tile.splat %of_cmp : tensor<${rows}xi1>
        %of_sel_row = tile.splat %of_sel : tensor<${rows}xi1>
        %m_else = arith.select %of_sel_row, %m_sel_finite, %m_win_finite : tensor<${rows}xi1>, tensor<${rows}xf32>
        %m_branch = arith.select %of_cmp_row, %m_cmp_finite, %m_else : tensor<${rows}xi1>, tensor<${rows}xf32>
        %norm_else = arith.select %of_sel_row, %norm_sel, %norm_win : tensor<${rows}xi1>, tensor<${rows}xf32>
        %norm_branch = arith.select %of_cmp_row, %norm_cmp, %norm_else : tensor<${rows}xi1>, tensor<${rows}xf32>
        %branch_all = scf.for %own_split = %first_of_branch to %past_of_branch step %one
            iter_args(%branch_sum = %no_sum) -> (tensor<${rows}x${column_tile}xf32>) : i32 {
          %o_split = tile.load %o_slots rows(%r) {
            %exists = arith.cmpi slt, %r, %members : i32
            %head = arith.addi %first_head, %r : i32
            tile.at [%own_split, %row_time, %head] if %exists
          } chunk(%chunk of %v_dim) : !tile.view<f32, 3> -> tensor<${rows}x${column_tile}xf32>
          %lse_of_split = tile.load %lse_split rows(%r) {
            %exists = arith.cmpi slt, %r, %members : i32
            %head = arith.addi %first_head, %r : i32
            tile.at [%own_split, %row_time, %head] if %exists
          } : !tile.view<f32, 3> -> tensor<${rows}xf32>
          %below = arith.subf %lse_of_split, %m_branch : tensor<${rows}xf32>
          %share_of_split = math.exp2 %below : tensor<${rows}xf32>
          %weight = arith.mulf %share_of_split, %norm_branch : tensor<${rows}xf32>
          %weight_wide = tile.broadcast %weight : tensor<${rows}xf32> -> tensor<${rows}x${column_tile}xf32>
          %branch_next = math.fma %weight_wide, %o_split, %branch_sum : tensor<${rows}x${column_tile}xf32>
          scf.yield %branch_next : tensor<${rows}x${column_tile}xf32>
        }
        %branch_result = tile.cast %branch_all : tensor<${rows}x${column_tile}xf32> -> tensor<${rows}x${column_tile}x${element}>
        tile.store %branch_result, %o_branch rows(%r) {
          %exists = arith.cmpi slt, %r, %members : i32
          %head = arith.addi %first_head, %r : i32
          tile.at [%q_entry, %time, %head] if %exists
        } chunk(%chunk of %v_dim) : tensor<${rows}x${column_tile}x${element}>, !tile.view<${element}, 3>
      }
    }

    // The first chunk writes the log-sum-exps, once per head, and the counts of reads, once per group.
    %is_first_chunk = arith.cmpi eq, %chunk, %zero : i32
    scf.if %is_first_chunk {
      %ln_2 = arith.constant dense<0.693147180559945> : tensor<${rows}xf32>
      scf.for %branch = %zero to %three step %one : i32 {
        %of_cmp = arith.cmpi eq, %branch, %zero : i32
        %of_sel = arith.cmpi eq, %branch, %one : i32
        %lse_sel_or_win = arith.select %of_sel, %lse_sel, %lse_win : !tile.view<f32, 3>
        %lse_out = arith.select %of_cmp, %lse_cmp, %lse_sel_or_win : !tile.view<f32, 3>
        %wants_lse = tile.present %lse_out : !tile.view<f32, 3>
        scf.if %wants_lse {
          %of_cmp_row = tile.splat %of_cmp : tensor<${rows}xi1>
          %of_sel_row = tile.splat %of_sel : tensor<${rows}xi1>
          %m_out_sel_or_win = arith.select %of_sel_row, %m_sel, %m_win : tensor<${rows}xi1>, tensor<${rows}xf32>
          %m_out = arith.select %of_cmp_row, %m_cmp, %m_out_sel_or_win : tensor<${rows}xi1>, tensor<${rows}xf32>
          %l_out_sel_or_win = arith.select %of_sel_row, %l_sel, %l_win : tensor<${rows}xi1>, tensor<${rows}xf32>
          %l_out = arith.select %of_cmp_row, %l_cmp, %l_out_sel_or_win : tensor<${rows}xi1>, tensor<${rows}xf32>
          %l_log2 = math.log2 %l_out : tensor<${rows}xf32>
          %total_log2 = arith.addf %m_out, %l_log2 : tensor<${rows}xf32>
          %total = arith.mulf %total_log2, %ln_2 : tensor<${rows}xf32>
          // A branch without weight has the log-sum-exp -inf. A sum that is NaN counts as weight.
          %l_out_zero = arith.cmpf oeq, %l_out, %zero_row : tensor<${rows}xf32>
          %lse_row = arith.select %l_out_zero, %minus_inf_row, %total : tensor<${rows}xi1>, tensor<${rows}xf32>
          tile.store %lse_row, %lse_out rows(%r) {
            %exists = arith.cmpi slt, %r, %members : i32
            %head = arith.addi %first_head, %r : i32
            tile.at [%q_entry, %time, %head] if %exists
          } : tensor<${rows}xf32>, !tile.view<f32, 3>
        }
      }
      %wants_reads = tile.present %reads : !tile.view<i32, 3>
      %is_first_tile = arith.cmpi eq, %head_tile, %zero : i32
      %writes_reads = arith.andi %wants_reads, %is_first_tile : i1
      scf.if %writes_reads {
        %reads_tile = tile.load %reads_slots rows(%r) {
          %exists = arith.constant true
          tile.at [%row_time, %kv_head] if %exists
        } columns(${slots}) : !tile.view<i32, 2> -> tensor<${rows}x${slots}xi32>
        // Counts below 2^24 are exact as floats.
        %reads_float = arith.sitofp %reads_tile : tensor<${rows}x${slots}xi32> to tensor<${rows}x${slots}xf32>
        %reads_there = arith.select %is_slot, %reads_float, %nothing : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
        %reads_sum = tile.reduce add %reads_there : tensor<${rows}x${slots}xf32> -> tensor<${rows}xf32>
        %reads_row = arith.fptosi %reads_sum : tensor<${rows}xf32> to tensor<${rows}xi32>
        tile.store %reads_row, %reads rows(%r) {
          %is_first = arith.cmpi eq, %r, %zero : i32
          tile.at [%q_entry, %time, %kv_head] if %is_first
        } : tensor<${rows}xi32>, !tile.view<i32, 3>
      }
    }
  }
  return
}
