// Causal attention with its log-sum-exp. It defines three operators for a query at position p: `dense` attends all keys
// up to p, `window` attends the keys in (p - window, p], and `cmp` attends the compressed blocks that end at p or
// before (its keys are blocks).
//
// The rows of a tile are pairs of a query and a head of the group, heads fastest, so that all query heads of one
// key/value head share every key that is loaded. The softmax is the online softmax in base 2 (Milakov and Gimelshein,
// arXiv 1805.02867); tiles are as in FlashAttention-2 (arXiv 2307.08691).
//
//! template attention
//! include header/causal_attention.inc
// The number of rows in a page of keys if the cache has pages.
//! let     key_page = page_size / key_stride
//! let     qk_pad = roundup(qk_dim, dot_step)
//! let     v_pad  = roundup(v_dim, dot_step)
//! choice  query_tile = 16 | 32 | 64 | 128
//! choice  key_tile = 16 | 32 | 48 | 64 | 96 | 128
//! choice  stages = 1 | 2 | 3
//! choice  warps = 1 | 2 | 4 | 8
//! choice  queries_shared = 0 | 1
//! require cpu ? warps == 1 && stages == 1 && queries_shared == 0 && 128 % key_tile == 0 : query_tile % (16 * warps) == 0 && query_tile <= 32 * warps
// Queries of 16 bits may stay in shared memory, which frees registers for wider tiles. Queries of floats always stay
// there.
//! require dtype_bytes == 2 || queries_shared == 0
// Shared memory of a GPU block: the ring of keys and values, and the queries.
//! let     shared_bytes = (query_tile * qk_pad + stages * key_tile * (qk_pad + v_pad)) * dtype_bytes
//! require cpu || shared_bytes <= shared_limit
// Registers of a GPU thread: the result; the scores, which become the weights in place; and the queries if they are in
// registers. If the head is so large that no tile stays below the limit, the smallest tile is allowed. It spills and is
// slow, but the result is right.
//! let     registers = query_tile * (v_pad + key_tile + (dtype_bytes == 2 && !queries_shared ? qk_pad / 2 : 0)) / (32 * warps)
//! require cpu || registers <= 200 || (query_tile == 16 * warps && key_tile == 16)
// The cost of one row with 1024 allowed keys. Each key costs its dot products, its softmax, its share of loading the
// tile and its share of the tile's fixed cost. The tiles reach past the allowed keys by the width of a tile and by the
// positions that the queries of a tile span.
//! let     work = qk_pad + v_pad + 60
//! let     load = (qk_pad + v_pad) * dtype_bytes * (cpu ? 4 : 12) / query_tile
//! let     fixed_cost = cpu ? 150000 : stages == 1 ? 800000 : 200000 + shared_bytes / 4
//! let     cpu_bytes = 4 * (query_tile * (qk_pad + key_tile + v_pad) + key_tile * (qk_pad + v_pad))
//! let     crowding = cpu ? cpu_bytes / 1024 : max(0, registers - 96) / (dtype_bytes == 2 ? 4 : 1) + 15 * max(0, warps - 4)
// With few queries some multiprocessors are idle, and the kernel takes the time of one program: the number of slabs of
// 16 rows that each of the four schedulers handles.
//! let     slabs = cpu || many_queries ? 1 : query_tile / (16 * min(warps, 4))
//! cost    (1024 + key_tile + query_tile / (group * key_stride)) * (work + load + fixed_cost / (query_tile * key_tile) + crowding) * slabs
//! grid    ceildiv(max_seqlen_q * group, query_tile), kv_heads, batch
//! threads 32 * warps

func.func @attention(
    %q: !tile.view<${element}, 3>, %k: !tile.view<${element}, 3, ${key_page}>, %v: !tile.view<${element}, 3, ${key_page}>,
    %out: !tile.view<${element}, 3>, %lse: !tile.view<f32, 3>, %reads: !tile.view<i32, 3>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %seqlen_k: i32, %query_begin: i32, %query_end: i32,
    %window: i32, %scale_log2: f32, %k_offset: !tile.view<i32, 1> {tile.if_used},
    %status: !tile.view<i32, 1> {tile.if_used}) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %packed = arith.constant ${packed} : i1
  %windowed = arith.constant ${windowed} : i1
  %compressed = arith.constant ${compressed} : i1
  %has_key_offset = arith.constant ${key_offset} : i1
  %key_stride = arith.constant ${key_stride} : i32
  %sight = arith.constant ${sight} : i32
  %group = arith.constant ${group} : i32
  %query_tile = arith.constant ${query_tile} : i32
  %key_tile = arith.constant ${key_tile} : i32
  %zero_f = arith.constant 0.0 : f32
  %one_f = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %block = tile.program_id x
  %kv_head = tile.program_id y
  %batch = tile.program_id z

  // Where this sequence lies, and the position of its first key. A packed launch reads them from the table of sequences,
  // which holds a malformed sequence as one without queries. With offsets of keys every entry is 0, and the field
  // k_entry holds the offset.
  %q_entry, %k_entry, %q_begin, %k_begin, %q_length, %k_length, %first_key_position = scf.if %packed -> (i32, i32, i32, i32, i32, i32, i32) {
    %field_q_begin = arith.constant ${sequence_q_begin} : i32
    %field_q_length = arith.constant ${sequence_q_length} : i32
    %field_k_begin = arith.constant ${sequence_k_begin} : i32
    %field_k_length = arith.constant ${sequence_k_length} : i32
    %field_c_begin = arith.constant ${sequence_c_begin} : i32
    %field_k_entry = arith.constant ${sequence_k_entry} : i32
    %field_q_entry = arith.constant ${sequence_q_entry} : i32
    %q_begin = tile.load_scalar %sequences[%batch, %field_q_begin] : !tile.view<i32, 2>
    %q_length = tile.load_scalar %sequences[%batch, %field_q_length] : !tile.view<i32, 2>
    %begin_field = arith.select %compressed, %field_c_begin, %field_k_begin : i32
    %k_begin = tile.load_scalar %sequences[%batch, %begin_field] : !tile.view<i32, 2>
    %k_length = tile.load_scalar %sequences[%batch, %field_k_length] : !tile.view<i32, 2>
    %k_entry = tile.load_scalar %sequences[%batch, %field_k_entry] : !tile.view<i32, 2>
    %q_entry = tile.load_scalar %sequences[%batch, %field_q_entry] : !tile.view<i32, 2>
    %offset = arith.select %has_key_offset, %k_entry, %zero : i32
    %entry_of_keys = arith.select %has_key_offset, %zero, %k_entry : i32
    scf.yield %q_entry, %entry_of_keys, %q_begin, %k_begin, %q_length, %k_length, %offset : i32, i32, i32, i32, i32, i32, i32
  } else {
    %queries_or_none, %offset = scf.if %has_key_offset -> (i32, i32) {
      //! part read_k_offset
      tile.report %is_bad_offset, %bad_k_offset, %batch to %status : !tile.view<i32, 1>
      %queries_or_none = arith.select %is_bad_offset, %zero, %seqlen_q : i32
      scf.yield %queries_or_none, %offset : i32, i32
    } else {
      scf.yield %seqlen_q, %zero : i32, i32
    }
    scf.yield %batch, %batch, %zero, %zero, %queries_or_none, %seqlen_k, %offset : i32, i32, i32, i32, i32, i32, i32
  }

  // The queries of this sequence that the launch computes: `queries` queries from time `first_time` on.
  //! part launch_queries
  %tile_less_one = arith.subi %query_tile, %one : i32
  %rows_rounded = arith.addi %rows, %tile_less_one : i32
  %row_blocks = arith.divsi %rows_rounded, %query_tile : i32
  %has_rows = arith.cmpi slt, %block, %row_blocks : i32
  scf.if %has_rows {
    // The last rows see most keys. They start first, so that no long program is left over at the end.
    %next_block = arith.addi %block, %one : i32
    %row_block = arith.subi %row_blocks, %next_block : i32
    %first_row = arith.muli %row_block, %query_tile : i32
    %past_full_row = arith.addi %first_row, %query_tile : i32
    %past_row = arith.minsi %past_full_row, %rows : i32
    %last_row = arith.subi %past_row, %one : i32
    %first_query = arith.divsi %first_row, %group : i32
    %last_query = arith.divsi %last_row, %group : i32
    %first_head = arith.muli %kv_head, %group : i32

    // The queries are the last tokens of the sequence. The first query of this launch stands `earlier` tokens behind the
    // first key, or before it where `earlier` is negative. All positions from here on count from the first key.
    %later = arith.subi %q_past, %first_time : i32
    %past_position = arith.subi %k_length, %first_key_position : i32
    %earlier = arith.subi %past_position, %later : i32
    %first_position = arith.addi %earlier, %first_query : i32
    %last_position = arith.addi %earlier, %last_query : i32

    // The newest keys that the first and the last row see. If keys are tokens, a row's newest key is at its own
    // position. If keys are compressed blocks, a row sees only blocks that the sequence has.
    %first_past_token = arith.addi %first_position, %sight : i32
    %first_past_key = arith.divsi %first_past_token, %key_stride : i32
    %first_newest_key = arith.subi %first_past_key, %one : i32
    %past_token = arith.addi %last_position, %sight : i32
    %past_key = arith.divsi %past_token, %key_stride : i32
    %last_newest_key = arith.subi %past_key, %one : i32
    %window_less_one = arith.subi %window, %one : i32
    // With an offset, rows may look at keys behind the last key that exists, which ends the walk, and a first row that
    // stands before all keys must not make the difference overflow.
    %sight_less_one = arith.subi %sight, %one : i32
    %past_real_token = arith.addi %k_length, %sight_less_one : i32
    %past_walk_token = arith.minsi %past_token, %past_real_token : i32
    %past_real_key = arith.divsi %past_walk_token, %key_stride : i32
    %past_walk = arith.select %has_key_offset, %past_real_key, %past_key : i32
    %newest_real_key = arith.subi %past_real_key, %one : i32
    %first_newest_real_key = arith.minsi %first_newest_key, %newest_real_key : i32
    %first_newest_of_walk = arith.select %has_key_offset, %first_newest_real_key, %first_newest_key : i32
    %minus_one = arith.constant -1 : i32
    %first_newest_or_none = arith.maxsi %first_newest_key, %minus_one : i32
    %first_newest_of_window = arith.select %has_key_offset, %first_newest_or_none, %first_newest_key : i32
    %oldest_key = arith.subi %first_newest_of_window, %window_less_one : i32
    %oldest_real_key = arith.maxsi %oldest_key, %zero : i32
    %first_key = arith.select %windowed, %oldest_real_key, %zero : i32

    //! part softmax_begin rows=${query_tile}

    %q_tile = tile.load %q rows(%r) {
      //! part group_row
      tile.at [%q_entry, %time, %head] if %exists
    } columns(${qk_dim}) {tile.stay_in_shared = ${queries_shared} : i1} : !tile.view<${element}, 3> -> tensor<${query_tile}x${qk_pad}x${element}>

    %m_all, %l_all, %o_all = scf.for %key = %first_key to %past_walk step %key_tile
        iter_args(%m = %minus_inf_row, %l = %zero_row, %o = %no_output)
        -> (tensor<${query_tile}xf32>, tensor<${query_tile}xf32>, tensor<${query_tile}x${v_pad}xf32>) : i32 {
      %k_tile = tile.load %k rows(%r) {
        %index = arith.addi %key, %r : i32
        %exists = arith.cmpi slt, %index, %past_walk : i32
        %time = arith.addi %k_begin, %index : i32
        tile.at [%k_entry, %time, %kv_head] if %exists
      } columns(${qk_dim}) : !tile.view<${element}, 3, ${key_page}> -> tensor<${key_tile}x${qk_pad}x${element}>
      %v_tile = tile.load %v rows(%r) {
        %index = arith.addi %key, %r : i32
        %exists = arith.cmpi slt, %index, %past_walk : i32
        %time = arith.addi %k_begin, %index : i32
        tile.at [%k_entry, %time, %kv_head] if %exists
      } columns(${v_dim}) : !tile.view<${element}, 3, ${key_page}> -> tensor<${key_tile}x${v_pad}x${element}>

      // An edge tile holds a key that some row may not attend: a key newer than the newest key of the first row, a key
      // that has left the window of the last row, or, with an offset, a row of the tile behind the last key. Scores are
      // masked only in edge tiles. Only there may values hold bytes that must not reach a result.
      %key_past_tile = arith.addi %key, %key_tile : i32
      %last_key = arith.subi %key_past_tile, %one : i32
      %has_future = arith.cmpi sgt, %last_key, %first_newest_of_walk : i32
      %last_expired_key = arith.subi %last_newest_key, %window : i32
      %has_expired_key = arith.cmpi sle, %key, %last_expired_key : i32
      %has_expired = arith.andi %windowed, %has_expired_key : i1
      %is_edge = arith.ori %has_future, %has_expired : i1

      %s_all = tile.dot %q_tile, %k_tile, %no_scores {transpose_b} : tensor<${query_tile}x${qk_pad}x${element}>, tensor<${key_tile}x${qk_pad}x${element}> -> tensor<${query_tile}x${key_tile}xf32>
      %s = scf.if %is_edge -> (tensor<${query_tile}x${key_tile}xf32>) {
        %one_tile = arith.constant dense<1> : tensor<${query_tile}xi32>
        //! part row_positions
        %newest_key = arith.subi %row_past_key, %one_tile : tensor<${query_tile}xi32>
        %column = tile.iota 1 : tensor<${query_tile}x${key_tile}xi32>
        %key_of_tile = tile.splat %key : tensor<${query_tile}x${key_tile}xi32>
        %key_index = arith.addi %key_of_tile, %column : tensor<${query_tile}x${key_tile}xi32>
        %newest_key_wide = tile.broadcast %newest_key : tensor<${query_tile}xi32> -> tensor<${query_tile}x${key_tile}xi32>
        %age = arith.subi %newest_key_wide, %key_index : tensor<${query_tile}x${key_tile}xi32>
        %no_age = tile.splat %zero : tensor<${query_tile}x${key_tile}xi32>
        %is_past = arith.cmpi sge, %age, %no_age : tensor<${query_tile}x${key_tile}xi32>
        %is_past_and_real = scf.if %has_key_offset -> (tensor<${query_tile}x${key_tile}xi1>) {
          %past_walk_tile = tile.splat %past_walk : tensor<${query_tile}x${key_tile}xi32>
          %is_real = arith.cmpi slt, %key_index, %past_walk_tile : tensor<${query_tile}x${key_tile}xi32>
          %is_past_and_real = arith.andi %is_past, %is_real : tensor<${query_tile}x${key_tile}xi1>
          scf.yield %is_past_and_real : tensor<${query_tile}x${key_tile}xi1>
        } else {
          scf.yield %is_past : tensor<${query_tile}x${key_tile}xi1>
        }
        %allowed = scf.if %windowed -> (tensor<${query_tile}x${key_tile}xi1>) {
          %window_tile = tile.splat %window : tensor<${query_tile}x${key_tile}xi32>
          %is_recent = arith.cmpi slt, %age, %window_tile : tensor<${query_tile}x${key_tile}xi32>
          %both = arith.andi %is_past_and_real, %is_recent : tensor<${query_tile}x${key_tile}xi1>
          scf.yield %both : tensor<${query_tile}x${key_tile}xi1>
        } else {
          scf.yield %is_past_and_real : tensor<${query_tile}x${key_tile}xi1>
        }
        %minus_inf_tile = tile.splat %minus_inf : tensor<${query_tile}x${key_tile}xf32>
        %s_allowed = arith.select %allowed, %s_all, %minus_inf_tile : tensor<${query_tile}x${key_tile}xi1>, tensor<${query_tile}x${key_tile}xf32>
        scf.yield %s_allowed : tensor<${query_tile}x${key_tile}xf32>
      } else {
        scf.yield %s_all : tensor<${query_tile}x${key_tile}xf32>
      }

      // A row that has met no allowed key has the maximum -inf. Its weights are taken against 0 instead, and are 0.
      //! part softmax_step rows=${query_tile}
      %o_next = scf.if %is_edge -> (tensor<${query_tile}x${v_pad}xf32>) {
        %o_edge = tile.dot %p_rounded, %v_tile, %o_decayed {zero_annihilates} : tensor<${query_tile}x${key_tile}x${mma_element}>, tensor<${key_tile}x${v_pad}x${element}> -> tensor<${query_tile}x${v_pad}xf32>
        scf.yield %o_edge : tensor<${query_tile}x${v_pad}xf32>
      } else {
        %o_inner = tile.dot %p_rounded, %v_tile, %o_decayed : tensor<${query_tile}x${key_tile}x${mma_element}>, tensor<${key_tile}x${v_pad}x${element}> -> tensor<${query_tile}x${v_pad}xf32>
        scf.yield %o_inner : tensor<${query_tile}x${v_pad}xf32>
      }
      scf.yield %m_next, %l_next, %o_next : tensor<${query_tile}xf32>, tensor<${query_tile}xf32>, tensor<${query_tile}x${v_pad}xf32>
    } {tile.stages = ${stages} : i32}

    // A row without weight (all its scores are -inf) has the result 0 and the log-sum-exp -inf.
    //! part softmax_end rows=${query_tile}
    %out_tile = tile.cast %result : tensor<${query_tile}x${v_pad}xf32> -> tensor<${query_tile}x${v_pad}x${element}>
    tile.store %out_tile, %out rows(%r) {
      //! part group_row
      tile.at [%q_entry, %time, %head] if %exists
    } columns(${v_dim}) : tensor<${query_tile}x${v_pad}x${element}>, !tile.view<${element}, 3>

    %wants_lse = tile.present %lse : !tile.view<f32, 3>
    scf.if %wants_lse {
      //! part natural_lse rows=${query_tile}
      tile.store %lse_tile, %lse rows(%r) {
        //! part group_row
        tile.at [%q_entry, %time, %head] if %exists
      } : tensor<${query_tile}xf32>, !tile.view<f32, 3>
    }

    // The number of keys that a query attended: the keys that it sees among the keys that this program read. All heads
    // of a group read the same keys, so the row of the first head writes the number.
    %wants_reads = tile.present %reads : !tile.view<i32, 3>
    scf.if %wants_reads {
      //! part row_positions
      %walk_past = tile.splat %past_walk : tensor<${query_tile}xi32>
      %read_past = arith.minsi %row_past_key, %walk_past : tensor<${query_tile}xi32>
      %read_or_fewer = scf.if %windowed -> (tensor<${query_tile}xi32>) {
        %walk_first = tile.splat %first_key : tensor<${query_tile}xi32>
        %window_row = tile.splat %window : tensor<${query_tile}xi32>
        %row_first_key = arith.subi %row_past_key, %window_row : tensor<${query_tile}xi32>
        %read_first = arith.maxsi %row_first_key, %walk_first : tensor<${query_tile}xi32>
        %recent = arith.subi %read_past, %read_first : tensor<${query_tile}xi32>
        scf.yield %recent : tensor<${query_tile}xi32>
      } else {
        scf.yield %read_past : tensor<${query_tile}xi32>
      }
      %no_read = tile.splat %zero : tensor<${query_tile}xi32>
      %read = arith.maxsi %read_or_fewer, %no_read : tensor<${query_tile}xi32>
      tile.store %read, %reads rows(%r) {
        //! part group_first_row
        tile.at [%q_entry, %time, %kv_head] if %exists
      } : tensor<${query_tile}xi32>, !tile.view<i32, 3>
    }
  }
  return
}
