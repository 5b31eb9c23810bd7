// Attention of the newest queries of decode, each program over a part of the keys: the operators `split_cmp` (the
// compressed blocks that end at the query's position or before) and `split_sel_win` (the chosen selection blocks, and
// the window).
//
// Few queries make too few programs, so the keys of a query are divided among `splits` programs (Flash-Decoding);
// `merge` adds up their results. `split_sel_win` serves two branches that do not depend on each other. The first
// `sel_splits` splits serve the selected branch, and the other splits serve the window. If `lists` is 0, the selected
// branch attends all keys.
//
// A program serves one query, one key/value head and one split. The rows of its tile are query heads of the group. All
// rows have the same position. So keys that they may not attend are not loaded, and no byte of such a key can reach a
// result.
//
// The list comes from `choose`: its blocks are in any order, and it holds as many blocks as there are to choose.
//
//! template split_attention
//! operator split_cmp, split_sel_win
//! fixed   dtype, qk_dim, v_dim, group, page_size
//! fixed   split_cmp: cmp_block, cmp_stride
//! fixed   split_sel_win: sel_block, sel_count
//! let     compressed = op == split_cmp
//! let     key_stride = compressed ? cmp_stride : 1
//! let     key_page = page_size / key_stride
// Position p sees the keys below (p + sight) / key_stride. If that is negative, it sees no key.
//! let     sight = compressed ? 1 + cmp_stride - cmp_block : 1
//! let     block_tokens = compressed ? 1 : sel_block
//! let     list_slots = compressed ? 1 : sel_count
//! let     qk_pad = roundup(qk_dim, dot_step)
//! let     v_pad  = roundup(v_dim, dot_step)
// The query heads of one program. Several programs may serve a large group.
//! choice  head_tile = 16 | 32 | 64 | 128
//! choice  key_tile = 16 | 32 | 64
//! choice  stages = 1 | 2 | 3 | 4
//! choice  warps = 1 | 2 | 4
//! require compressed || key_tile <= roundup(sel_block, 16)
//! require head_tile == 16 || head_tile < 2 * group
//! let     rows = cpu ? min(group, head_tile) : head_tile
//! let     head_tiles = ceildiv(group, rows)
//! require cpu ? warps == 1 && stages == 1 : rows % (16 * warps) == 0 && rows <= 32 * warps
//! let     shared_bytes = rows * qk_pad * dtype_bytes + stages * key_tile * (qk_pad + v_pad) * dtype_bytes
//! require cpu || shared_bytes <= shared_limit
//! let     registers = rows * (v_pad + key_tile + (dtype_bytes == 2 ? qk_pad / 2 : 0)) / (32 * warps)
//! require cpu || registers <= 184 || (rows == 16 * warps && key_tile == 16)
// The number of tiles of a selection block. The last tile may be partly filled.
//! let     parts = ceildiv(block_tokens, key_tile)
// The time of this kernel is mostly latency. The cost depends first on the number of keys that a program loads ahead,
// and then on the number of programs that a multiprocessor holds.
//! let     under_way = (stages - 1) * key_tile
//! let     gpu_cost = head_tiles * 1000 + max(64 - under_way, under_way - 64) * 4 + 20 * max(key_tile - 32, 32 - key_tile) / 16 + registers / 8
//! let     cpu_cost = head_tiles * 1000 + max(64 - key_tile, 0)
//! cost    cpu ? cpu_cost : gpu_cost
//! grid    max_seqlen_q * head_tiles * splits, kv_heads, batch
//! threads 32 * warps

func.func @split_attention(
    %q: !tile.view<${element}, 3>, %k: !tile.view<${element}, 3, ${key_page}>, %v: !tile.view<${element}, 3, ${key_page}>,
    %k_win: !tile.view<${element}, 3, ${key_page}>, %v_win: !tile.view<${element}, 3, ${key_page}>,
    %choice: !tile.view<i32, 3>, %o_split: !tile.view<f32, 3>, %lse_split: !tile.view<f32, 3>,
    %lse_heads: !tile.view<f32, 3>, %reads_split: !tile.view<i32, 3>, %sequences: !tile.view<i32, 2>, %seqlen_q: i32,
    %splits: i32, %sel_splits: i32, %first_split: i32, %lists: i32, %window: i32, %scale_log2: f32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %yes = arith.constant true
  %compressed = arith.constant ${compressed} : i1
  %uncompressed = arith.xori %compressed, %yes : i1
  %key_stride = arith.constant ${key_stride} : i32
  %sight = arith.constant ${sight} : i32
  %group = arith.constant ${group} : i32
  %block_tokens = arith.constant ${block_tokens} : i32
  %list_slots = arith.constant ${list_slots} : i32
  %parts = arith.constant ${parts} : i32
  %rows = arith.constant ${rows} : i32
  %head_tiles = arith.constant ${head_tiles} : i32
  %key_tile = arith.constant ${key_tile} : i32
  %tile_less_one = arith.subi %key_tile, %one : i32
  %zero_f = arith.constant 0.0 : f32
  %one_f = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %program = tile.program_id x
  %kv_head = tile.program_id y
  %sequence = tile.program_id z
  %split = arith.remsi %program, %splits : i32
  %rest = arith.divsi %program, %splits : i32
  %head_index = arith.remsi %rest, %head_tiles : i32
  %query = arith.divsi %rest, %head_tiles : i32

  // The branch that this program serves, and the number of its split within the branch.
  %is_sel = arith.cmpi slt, %split, %sel_splits : i32
  %has_lists = arith.cmpi ne, %lists, %zero : i32
  %selects = arith.andi %is_sel, %has_lists : i1
  %past_sel = arith.subi %split, %sel_splits : i32
  %win_splits = arith.subi %splits, %sel_splits : i32
  %split_of_branch = arith.select %is_sel, %split, %past_sel : i32
  %splits_of_branch = arith.select %is_sel, %sel_splits, %win_splits : i32
  %is_first_view = arith.ori %is_sel, %compressed : i1
  %keys_view = arith.select %is_first_view, %k, %k_win : !tile.view<${element}, 3, ${key_page}>
  %values_view = arith.select %is_first_view, %v, %v_win : !tile.view<${element}, 3, ${key_page}>

  %field_q_begin = arith.constant ${sequence_q_begin} : i32
  %field_q_length = arith.constant ${sequence_q_length} : i32
  %field_k_begin = arith.constant ${sequence_k_begin} : i32
  %field_k_length = arith.constant ${sequence_k_length} : i32
  %field_c_begin = arith.constant ${sequence_c_begin} : i32
  %field_k_entry = arith.constant ${sequence_k_entry} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %q_begin = tile.load_scalar %sequences[%sequence, %field_q_begin] : !tile.view<i32, 2>
  %queries = tile.load_scalar %sequences[%sequence, %field_q_length] : !tile.view<i32, 2>
  %k_length = tile.load_scalar %sequences[%sequence, %field_k_length] : !tile.view<i32, 2>
  %k_entry = tile.load_scalar %sequences[%sequence, %field_k_entry] : !tile.view<i32, 2>
  %q_entry = tile.load_scalar %sequences[%sequence, %field_q_entry] : !tile.view<i32, 2>
  %begin_field = arith.select %compressed, %field_c_begin, %field_k_begin : i32
  %k_begin = tile.load_scalar %sequences[%sequence, %begin_field] : !tile.view<i32, 2>
  %has_query = arith.cmpi slt, %query, %queries : i32
  scf.if %has_query {
    %time = arith.addi %q_begin, %query : i32
    // The row of this query among the rows of all sequences.
    %rows_before = arith.muli %q_entry, %seqlen_q : i32
    %row_time = arith.addi %rows_before, %time : i32
    %earlier = arith.subi %k_length, %queries : i32
    %position = arith.addi %earlier, %query : i32
    %past_position = arith.addi %position, %one : i32
    %group_first = arith.muli %kv_head, %group : i32
    %first_member = arith.muli %head_index, %rows : i32
    %first_head = arith.addi %group_first, %first_member : i32
    %members = arith.subi %group, %first_member : i32

    // The keys that the query attends: [walk_first, walk_past), or the blocks of its list up to its own position.
    // `all_steps` is the number of tiles that hold them.
    %seen_span = arith.addi %position, %sight : i32
    %seen_real = arith.maxsi %seen_span, %zero : i32
    %walk_past = arith.divsi %seen_real, %key_stride : i32
    %oldest = arith.subi %walk_past, %window : i32
    %oldest_real = arith.maxsi %oldest, %zero : i32
    %walk_first = arith.select %is_first_view, %zero, %oldest_real : i32
    %own_block = arith.divsi %position, %block_tokens : i32
    %blocks_so_far = arith.addi %own_block, %one : i32
    %listed = arith.minsi %blocks_so_far, %list_slots : i32
    %listed_steps = arith.muli %listed, %parts : i32
    %keys_in_all = arith.subi %walk_past, %walk_first : i32
    %keys_rounded = arith.addi %keys_in_all, %tile_less_one : i32
    %walked_steps = arith.divsi %keys_rounded, %key_tile : i32
    %all_steps = arith.select %selects, %listed_steps, %walked_steps : i32

    // The share of these tiles that belongs to this split.
    %splits_less_one = arith.subi %splits_of_branch, %one : i32
    %steps_rounded = arith.addi %all_steps, %splits_less_one : i32
    %share = arith.divsi %steps_rounded, %splits_of_branch : i32
    %first_step_or_more = arith.muli %split_of_branch, %share : i32
    %first_step = arith.minsi %first_step_or_more, %all_steps : i32
    %past_share = arith.addi %first_step, %share : i32
    %past_step = arith.minsi %past_share, %all_steps : i32

    //! part softmax_begin

    %q_tile = tile.load %q rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%q_entry, %time, %head] if %exists
    } columns(${qk_dim}) : !tile.view<${element}, 3> -> tensor<${rows}x${qk_pad}x${element}>

    %m_all, %l_all, %o_all, %reads_all = scf.for %step = %first_step to %past_step step %one
        iter_args(%m = %minus_inf_row, %l = %zero_row, %o = %no_output, %read = %zero)
        -> (tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}x${v_pad}xf32>, i32) : i32 {
      // The keys of this step: key_tile keys, or fewer at the end of the block or at the query's position.
      %keys_before = arith.muli %step, %key_tile : i32
      %first_walked = arith.addi %walk_first, %keys_before : i32
      %walked_left = arith.subi %walk_past, %first_walked : i32
      %first_key, %left = scf.if %uncompressed -> (i32, i32) {
        %step_slot = arith.divsi %step, %parts : i32
        %slot = arith.select %selects, %step_slot, %zero : i32
        %part = arith.remsi %step, %parts : i32
        %block = tile.load_scalar %choice[%row_time, %kv_head, %slot] : !tile.view<i32, 3>
        %block_first = arith.muli %block, %block_tokens : i32
        %part_first = arith.muli %part, %key_tile : i32
        %first_listed = arith.addi %block_first, %part_first : i32
        %left_of_block = arith.subi %block_tokens, %part_first : i32
        %left_of_past = arith.subi %past_position, %first_listed : i32
        // The query's own block may have no key left in this step. A slot may hold no block: with malformed offsets two
        // sequences share a row of lists, and the list that was written last may be shorter.
        %listed_or_less = arith.minsi %left_of_block, %left_of_past : i32
        %listed_or_none = arith.maxsi %listed_or_less, %zero : i32
        %is_block = arith.cmpi sge, %block, %zero : i32
        %listed_left = arith.select %is_block, %listed_or_none, %zero : i32
        %first_of_branch = arith.select %selects, %first_listed, %first_walked : i32
        %left_of_branch = arith.select %selects, %listed_left, %walked_left : i32
        scf.yield %first_of_branch, %left_of_branch : i32, i32
      } else {
        scf.yield %first_walked, %walked_left : i32, i32
      }
      %keys = arith.minsi %left, %key_tile : i32

      //! part key_rows tile=k_tile view=keys_view columns=${qk_dim} padded=${qk_pad} page=${key_page}
      //! part key_rows tile=v_tile view=values_view columns=${v_dim} padded=${v_pad} page=${key_page}

      // Rows of the tile that hold no key are zero. Their weights are 0.
      //! part masked_scores

      // A row whose scores so far are all -inf has the maximum -inf. Its weights are taken against 0 instead, and are
      // 0.
      //! part softmax_step
      %o_next = tile.dot %p_rounded, %v_tile, %o_decayed : tensor<${rows}x${key_tile}x${mma_element}>, tensor<${key_tile}x${v_pad}x${element}> -> tensor<${rows}x${v_pad}xf32>
      %read_next = arith.addi %read, %keys : i32
      scf.yield %m_next, %l_next, %o_next, %read_next : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}x${v_pad}xf32>, i32
    } {tile.stages = ${stages} : i32}

    // A split without weight has the result 0 and the log-sum-exp -inf.
    %slot_of_split = arith.addi %first_split, %split : i32
    //! part softmax_end
    tile.store %result, %o_split rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%slot_of_split, %row_time, %head] if %exists
    } columns(${v_dim}) : tensor<${rows}x${v_pad}xf32>, !tile.view<f32, 3>

    %m_log2 = arith.mulf %m_all, %scale_row : tensor<${rows}xf32>
    %l_log2 = math.log2 %l_all : tensor<${rows}xf32>
    %weight_log2 = arith.addf %m_log2, %l_log2 : tensor<${rows}xf32>
    %lse_tile = arith.select %l_zero, %minus_inf_row, %weight_log2 : tensor<${rows}xi1>, tensor<${rows}xf32>
    tile.store %lse_tile, %lse_split rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%slot_of_split, %row_time, %head] if %exists
    } : tensor<${rows}xf32>, !tile.view<f32, 3>
    // The log-sum-exp once more for the operator `scores`, whose columns are heads.
    %wants_heads = tile.present %lse_heads : !tile.view<f32, 3>
    scf.if %wants_heads {
      tile.store %lse_tile, %lse_heads rows(%r) {
        %exists = arith.cmpi slt, %r, %members : i32
        %head = arith.addi %first_head, %r : i32
        tile.at [%split, %row_time, %head] if %exists
      } : tensor<${rows}xf32>, !tile.view<f32, 3>
    }

    %wants_reads = tile.present %reads_split : !tile.view<i32, 3>
    %is_first_tile = arith.cmpi eq, %head_index, %zero : i32
    %writes_reads = arith.andi %wants_reads, %is_first_tile : i1
    scf.if %writes_reads {
      %reads_row = tile.splat %reads_all : tensor<${rows}xi32>
      tile.store %reads_row, %reads_split rows(%r) {
        %is_first = arith.cmpi eq, %r, %zero : i32
        tile.at [%slot_of_split, %row_time, %kv_head] if %is_first
      } : tensor<${rows}xi32>, !tile.view<i32, 3>
    }
  }
  return
}
