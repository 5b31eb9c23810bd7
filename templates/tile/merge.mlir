// What the splits of decode's branches found, added up, and the branches by their gates: the operator `merge`. A program
// serves one query head and a chunk of its columns: a product whose left side holds the weight of each split of all
// branches, equal in all rows, and whose right side holds what they found. Logarithms are in base 2.
//
//! template merge
//! operator merge
//! fixed   dtype, v_dim, group, gate, gate_per_group, slots
//! let     gate_sigmoid = gate == sigmoid
//! let     gate_softmax = gate == softmax
//! choice  rows = 16
//! choice  column_tile = 16 | 32 | 64 | 128
//! require column_tile == 16 || column_tile < 2 * v_dim
//! let     chunks = ceildiv(v_dim, column_tile)
// Many slots are those of few queries, which want many programs; few slots those of many.
//! let     wanted = cpu || slots == 16 ? 128 : 32
//! cost    max(column_tile - wanted, wanted - column_tile)
//! grid    max_seqlen_q * group * chunks, kv_heads, batch
//! threads 32

func.func @merge(
    %o_slots: !tile.view<f32, 3>, %lse_slots: !tile.view<f32, 2>, %reads_slots: !tile.view<i32, 2>,
    %gates: !tile.view<${element}, 4>, %out: !tile.view<${element}, 3>,
    %o_cmp: !tile.view<${element}, 3>, %o_sel: !tile.view<${element}, 3>, %o_win: !tile.view<${element}, 3>,
    %lse_cmp: !tile.view<f32, 3>, %lse_sel: !tile.view<f32, 3>, %lse_win: !tile.view<f32, 3>,
    %reads: !tile.view<i32, 3>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32,
    %past_cmp_split: i32, %past_sel_split: i32, %past_win_split: i32) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %seven = arith.constant 7 : i32
  %group = arith.constant ${group} : i32
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
  %member = arith.remsi %rest, %group : i32
  %query = arith.divsi %rest, %group : i32
  %group_first = arith.muli %kv_head, %group : i32
  %head = arith.addi %group_first, %member : i32

  %q_begin = tile.load_scalar %sequences[%sequence, %zero] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %one] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %seven] : !tile.view<i32, 2>
  %has_query = arith.cmpi slt, %query, %queries : i32
  scf.if %has_query {
    %time = arith.addi %q_begin, %query : i32
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %row_time = arith.addi %rows_before, %time : i32

    // Every row of these tiles is the same.
    %gate_head = arith.select %gate_per_group, %kv_head, %head : i32
    %gate_0 = tile.load %gates rows(%r) {
      %exists = arith.constant true
      tile.at [%q_entry, %time, %gate_head, %zero] if %exists
    } : !tile.view<${element}, 4> -> tensor<${rows}x${element}>
    %gate_1 = tile.load %gates rows(%r) {
      %exists = arith.constant true
      tile.at [%q_entry, %time, %gate_head, %one] if %exists
    } : !tile.view<${element}, 4> -> tensor<${rows}x${element}>
    %gate_2 = tile.load %gates rows(%r) {
      %exists = arith.constant true
      tile.at [%q_entry, %time, %gate_head, %two] if %exists
    } : !tile.view<${element}, 4> -> tensor<${rows}x${element}>
    %lse = tile.load %lse_slots rows(%r) {
      %exists = arith.constant true
      tile.at [%row_time, %head] if %exists
    } columns(${slots}) : !tile.view<f32, 2> -> tensor<${rows}x${slots}xf32>
    %o = tile.load %o_slots rows(%r) {
      %exists = arith.cmpi slt, %r, %past_win_split : i32
      tile.at [%r, %row_time, %head] if %exists
    } chunk(%chunk of %v_dim) : !tile.view<f32, 3> -> tensor<${slots}x${column_tile}xf32>
    %x_cmp = tile.cast %gate_0 : tensor<${rows}x${element}> -> tensor<${rows}xf32>
    %x_sel = tile.cast %gate_1 : tensor<${rows}x${element}> -> tensor<${rows}xf32>
    %x_win = tile.cast %gate_2 : tensor<${rows}x${element}> -> tensor<${rows}xf32>

    // What the gates are, as in combine.mlir.
    %log2_e = arith.constant dense<1.44269504088896> : tensor<${rows}xf32>
    %minus_log2_e = arith.constant dense<-1.44269504088896> : tensor<${rows}xf32>
    %one_row = arith.constant dense<1.0> : tensor<${rows}xf32>
    %g_cmp, %g_sel, %g_win = scf.if %gate_softmax -> (tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>) {
      %x_max_2 = arith.maxnumf %x_cmp, %x_sel : tensor<${rows}xf32>
      %x_max = arith.maxnumf %x_max_2, %x_win : tensor<${rows}xf32>
      %cmp_below = arith.subf %x_cmp, %x_max : tensor<${rows}xf32>
      %sel_below = arith.subf %x_sel, %x_max : tensor<${rows}xf32>
      %win_below = arith.subf %x_win, %x_max : tensor<${rows}xf32>
      %cmp_log2 = arith.mulf %cmp_below, %log2_e : tensor<${rows}xf32>
      %sel_log2 = arith.mulf %sel_below, %log2_e : tensor<${rows}xf32>
      %win_log2 = arith.mulf %win_below, %log2_e : tensor<${rows}xf32>
      %e_cmp = math.exp2 %cmp_log2 : tensor<${rows}xf32>
      %e_sel = math.exp2 %sel_log2 : tensor<${rows}xf32>
      %e_win = math.exp2 %win_log2 : tensor<${rows}xf32>
      %e_sum_2 = arith.addf %e_cmp, %e_sel : tensor<${rows}xf32>
      %e_sum = arith.addf %e_sum_2, %e_win : tensor<${rows}xf32>
      %softmax_cmp = arith.divf %e_cmp, %e_sum : tensor<${rows}xf32>
      %softmax_sel = arith.divf %e_sel, %e_sum : tensor<${rows}xf32>
      %softmax_win = arith.divf %e_win, %e_sum : tensor<${rows}xf32>
      scf.yield %softmax_cmp, %softmax_sel, %softmax_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
    } else {
      %sigmoid_cmp, %sigmoid_sel, %sigmoid_win = scf.if %gate_sigmoid -> (tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>) {
        %cmp_log2 = arith.mulf %x_cmp, %minus_log2_e : tensor<${rows}xf32>
        %sel_log2 = arith.mulf %x_sel, %minus_log2_e : tensor<${rows}xf32>
        %win_log2 = arith.mulf %x_win, %minus_log2_e : tensor<${rows}xf32>
        %e_cmp = math.exp2 %cmp_log2 : tensor<${rows}xf32>
        %e_sel = math.exp2 %sel_log2 : tensor<${rows}xf32>
        %e_win = math.exp2 %win_log2 : tensor<${rows}xf32>
        %cmp_past_one = arith.addf %one_row, %e_cmp : tensor<${rows}xf32>
        %sel_past_one = arith.addf %one_row, %e_sel : tensor<${rows}xf32>
        %win_past_one = arith.addf %one_row, %e_win : tensor<${rows}xf32>
        %logistic_cmp = arith.divf %one_row, %cmp_past_one : tensor<${rows}xf32>
        %logistic_sel = arith.divf %one_row, %sel_past_one : tensor<${rows}xf32>
        %logistic_win = arith.divf %one_row, %win_past_one : tensor<${rows}xf32>
        scf.yield %logistic_cmp, %logistic_sel, %logistic_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
      } else {
        scf.yield %x_cmp, %x_sel, %x_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
      }
      scf.yield %sigmoid_cmp, %sigmoid_sel, %sigmoid_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
    }

    // Which branch a split is of.
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

    // The greatest log-sum-exp of each branch, which is finite for the weights' sake, and each split's own branch's.
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
    %gated_cmp_wide = tile.broadcast %gated_cmp : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
    %gated_sel_wide = tile.broadcast %gated_sel : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
    %gated_win_wide = tile.broadcast %gated_win : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
    %gated_sel_or_win = arith.select %is_cmp_or_sel, %gated_sel_wide, %gated_win_wide : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %gated = arith.select %is_cmp, %gated_cmp_wide, %gated_sel_or_win : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %gated_share = arith.mulf %share, %gated : tensor<${rows}x${slots}xf32>
    %weight = arith.select %is_slot, %gated_share, %nothing : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
    %no_sum = tile.splat %zero_f : tensor<${rows}x${column_tile}xf32>
    %sum = tile.dot %weight, %o, %no_sum : tensor<${rows}x${slots}xf32>, tensor<${slots}x${column_tile}xf32> -> tensor<${rows}x${column_tile}xf32>
    %result = tile.cast %sum : tensor<${rows}x${column_tile}xf32> -> tensor<${rows}x${column_tile}x${element}>
    tile.store %result, %out rows(%r) {
      %is_first = arith.cmpi eq, %r, %zero : i32
      tile.at [%q_entry, %time, %head] if %is_first
    } chunk(%chunk of %v_dim) : tensor<${rows}x${column_tile}x${element}>, !tile.view<${element}, 3>

    // The branches by themselves, for callers who want to see them: a row each. What one of them holds, NaN too, is no
    // other's business.
    %wants_cmp = tile.present %o_cmp : !tile.view<${element}, 3>
    %wants_sel = tile.present %o_sel : !tile.view<${element}, 3>
    %wants_win = tile.present %o_win : !tile.view<${element}, 3>
    %wants_first_two = arith.ori %wants_cmp, %wants_sel : i1
    %wants_branches = arith.ori %wants_first_two, %wants_win : i1
    scf.if %wants_branches {
      %row = tile.iota 0 : tensor<${rows}xi32>
      %row_wide = tile.broadcast %row : tensor<${rows}xi32> -> tensor<${rows}x${slots}xi32>
      %zero_tile = tile.splat %zero : tensor<${rows}x${slots}xi32>
      %one_tile = tile.splat %one : tensor<${rows}x${slots}xi32>
      %two_tile = tile.splat %two : tensor<${rows}x${slots}xi32>
      %sel_or_win = arith.select %is_cmp_or_sel, %one_tile, %two_tile : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xi32>
      %branch_of_split = arith.select %is_cmp, %zero_tile, %sel_or_win : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xi32>
      %is_of_row = arith.cmpi eq, %branch_of_split, %row_wide : tensor<${rows}x${slots}xi32>
      %is_own = arith.andi %is_of_row, %is_slot : tensor<${rows}x${slots}xi1>
      %norm_cmp_wide = tile.broadcast %norm_cmp : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
      %norm_sel_wide = tile.broadcast %norm_sel : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
      %norm_win_wide = tile.broadcast %norm_win : tensor<${rows}xf32> -> tensor<${rows}x${slots}xf32>
      %norm_sel_or_win = arith.select %is_cmp_or_sel, %norm_sel_wide, %norm_win_wide : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
      %norm = arith.select %is_cmp, %norm_cmp_wide, %norm_sel_or_win : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
      %normed_share = arith.mulf %share, %norm : tensor<${rows}x${slots}xf32>
      %branch_weight = arith.select %is_own, %normed_share, %nothing : tensor<${rows}x${slots}xi1>, tensor<${rows}x${slots}xf32>
      %branch_sum = tile.dot %branch_weight, %o, %no_sum {zero_annihilates} : tensor<${rows}x${slots}xf32>, tensor<${slots}x${column_tile}xf32> -> tensor<${rows}x${column_tile}xf32>
      %branches = tile.cast %branch_sum : tensor<${rows}x${column_tile}xf32> -> tensor<${rows}x${column_tile}x${element}>
      scf.if %wants_cmp {
        tile.store %branches, %o_cmp rows(%r) {
          %is_branch = arith.cmpi eq, %r, %zero : i32
          tile.at [%q_entry, %time, %head] if %is_branch
        } chunk(%chunk of %v_dim) : tensor<${rows}x${column_tile}x${element}>, !tile.view<${element}, 3>
      }
      scf.if %wants_sel {
        tile.store %branches, %o_sel rows(%r) {
          %is_branch = arith.cmpi eq, %r, %one : i32
          tile.at [%q_entry, %time, %head] if %is_branch
        } chunk(%chunk of %v_dim) : tensor<${rows}x${column_tile}x${element}>, !tile.view<${element}, 3>
      }
      scf.if %wants_win {
        tile.store %branches, %o_win rows(%r) {
          %is_branch = arith.cmpi eq, %r, %two : i32
          tile.at [%q_entry, %time, %head] if %is_branch
        } chunk(%chunk of %v_dim) : tensor<${rows}x${column_tile}x${element}>, !tile.view<${element}, 3>
      }
    }

    // Once for each head, and once for each group.
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
          // A branch without weight; a sum of NaN is none.
          %l_out_zero = arith.cmpf oeq, %l_out, %zero_row : tensor<${rows}xf32>
          %lse_row = arith.select %l_out_zero, %minus_inf_row, %total : tensor<${rows}xi1>, tensor<${rows}xf32>
          tile.store %lse_row, %lse_out rows(%r) {
            %is_first = arith.cmpi eq, %r, %zero : i32
            tile.at [%q_entry, %time, %head] if %is_first
          } : tensor<${rows}xf32>, !tile.view<f32, 3>
        }
      }
      %wants_reads = tile.present %reads : !tile.view<i32, 3>
      %is_first_member = arith.cmpi eq, %member, %zero : i32
      %writes_reads = arith.andi %wants_reads, %is_first_member : i1
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
