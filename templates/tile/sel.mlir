// The operator `sel`: attention over the selection blocks that a list names, with its log-sum-exp (arXiv 2502.11089,
// 3.3.2).
//
// A program serves one query and one key/value head, which have one list. The rows of its tile are query heads of the
// group. The program walks the blocks of the list tile by tile; keys of different blocks are in different tiles. All
// rows have the same position. So keys that they may not attend are not loaded, and no byte of such a key can reach a
// result.
//
//! template sel
//! operator sel
//! fixed   dtype, qk_dim, v_dim, group, packed, page_size, sel_block, sel_count
//! let     qk_pad = roundup(qk_dim, dot_step)
//! let     v_pad  = roundup(v_dim, dot_step)
// The query heads of one program. Several programs may serve a large group.
//! choice  head_tile = 16 | 32 | 64 | 128
//! choice  key_tile = 16 | 32 | 48 | 64 | 96 | 128
//! choice  stages = 1 | 2 | 3 | 4
//! choice  warps = 1 | 2 | 4 | 8
//! choice  queries_shared = 0 | 1
//! require key_tile <= roundup(sel_block, 16)
//! require head_tile == 16 || head_tile < 2 * group
//! let     rows = cpu ? min(group, head_tile) : head_tile
//! let     head_tiles = ceildiv(group, rows)
//! require cpu ? warps == 1 && stages == 1 && queries_shared == 0 && 128 % key_tile == 0 : rows % (16 * warps) == 0 && rows <= 32 * warps
// Queries of 16 bits may stay in shared memory. Queries of floats always stay there.
//! require dtype_bytes == 2 || queries_shared == 0
//! let     key_bytes = (qk_pad + v_pad) * dtype_bytes
//! let     shared_bytes = rows * qk_pad * dtype_bytes + stages * key_tile * key_bytes
//! require cpu || shared_bytes <= shared_limit
//! let     registers = rows * (v_pad + key_tile + (dtype_bytes == 2 && !queries_shared ? qk_pad / 2 : 0)) / (32 * warps)
//! require cpu || registers <= 184 || (rows == 16 * warps && key_tile == 16)
// The number of tiles of a block. The last tile may be partly filled.
//! let     parts = ceildiv(sel_block, key_tile)
// The cost of one key, in cycles of a multiprocessor times 16. On a GPU it is the cost of moving the key from the
// second-level cache, as long as enough bytes are under way and the resident blocks compute their steps as fast.
//! let     resident = cpu ? 1 : max(1, min(min((shared_limit + 1024) / (shared_bytes + 1024), 65536 / (min(registers + 90, 255) * 32 * warps)), 32))
//! let     slab_key = dtype_bytes == 2 ? (qk_pad * (1 + queries_shared) + v_pad + 120) / 30 : (qk_pad + v_pad) * 3 / 4
//! let     step = ((stages == 1 ? 40000 : 14400) + 16 * key_tile * slab_key * rows / (16 * warps)) / (key_tile * resident)
//! let     latency = 24000 / (resident * key_tile * max(stages - 1, 1))
//! let     moved = key_bytes * 2 / 5
// On a CPU keys are copied and read once. Data that does not fit in the first-level cache passes through the
// second-level cache.
//! let     cpu_bytes = 4 * (rows * (qk_pad + key_tile + v_pad) + key_tile * (qk_pad + v_pad))
//! let     computed = (qk_pad + v_pad + 60) * roundup(rows, 16) / 4 + (qk_pad + v_pad) * 4 + 8000 / key_tile + 2 * key_tile + max(0, cpu_bytes - 49152) / 100
//! cost    1024 * parts * key_tile / sel_block * head_tiles * (cpu ? computed : 4 * max(moved, max(latency, step)) + step)
//! grid    max_seqlen_q * head_tiles, kv_heads, batch
//! threads 32 * warps

func.func @sel(
    %q: !tile.view<${element}, 3>, %k: !tile.view<${element}, 3, ${page_size}>, %v: !tile.view<${element}, 3, ${page_size}>,
    %block_list: !tile.view<i32, 4>, %out: !tile.view<${element}, 3>, %lse: !tile.view<f32, 3>, %reads: !tile.view<i32, 3>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %seqlen_k: i32, %query_begin: i32, %query_end: i32,
    %scale_log2: f32, %status: !tile.view<i32, 1>) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant -1 : i32
  %no = arith.constant false
  %yes = arith.constant true
  %packed = arith.constant ${packed} : i1
  %group = arith.constant ${group} : i32
  %sel_block = arith.constant ${sel_block} : i32
  %sel_count = arith.constant ${sel_count} : i32
  %parts = arith.constant ${parts} : i32
  %rows = arith.constant ${rows} : i32
  %head_tiles = arith.constant ${head_tiles} : i32
  %key_tile = arith.constant ${key_tile} : i32
  %zero_f = arith.constant 0.0 : f32
  %one_f = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %program = tile.program_id x
  %kv_head = tile.program_id y
  %batch = tile.program_id z

  // Where this sequence lies. The table holds a malformed sequence as one without queries.
  %q_entry, %k_entry, %q_begin, %k_begin, %q_length, %k_length = scf.if %packed -> (i32, i32, i32, i32, i32, i32) {
    %field_q_begin = arith.constant ${sequence_q_begin} : i32
    %field_q_length = arith.constant ${sequence_q_length} : i32
    %field_k_begin = arith.constant ${sequence_k_begin} : i32
    %field_k_length = arith.constant ${sequence_k_length} : i32
    %field_k_entry = arith.constant ${sequence_k_entry} : i32
    %field_q_entry = arith.constant ${sequence_q_entry} : i32
    %q_begin = tile.load_scalar %sequences[%batch, %field_q_begin] : !tile.view<i32, 2>
    %q_length = tile.load_scalar %sequences[%batch, %field_q_length] : !tile.view<i32, 2>
    %k_begin = tile.load_scalar %sequences[%batch, %field_k_begin] : !tile.view<i32, 2>
    %k_length = tile.load_scalar %sequences[%batch, %field_k_length] : !tile.view<i32, 2>
    %k_entry = tile.load_scalar %sequences[%batch, %field_k_entry] : !tile.view<i32, 2>
    %q_entry = tile.load_scalar %sequences[%batch, %field_q_entry] : !tile.view<i32, 2>
    scf.yield %q_entry, %k_entry, %q_begin, %k_begin, %q_length, %k_length : i32, i32, i32, i32, i32, i32
  } else {
    scf.yield %batch, %batch, %zero, %zero, %seqlen_q, %seqlen_k : i32, i32, i32, i32, i32, i32
  }

  // The queries of this sequence whose time is in the range of the launch.
  %range_first = arith.subi %query_begin, %q_begin : i32
  %range_past = arith.subi %query_end, %q_begin : i32
  %first_query = arith.maxsi %range_first, %zero : i32
  %past_query = arith.minsi %range_past, %q_length : i32
  %queries = arith.subi %past_query, %first_query : i32
  %query_index = arith.divsi %program, %head_tiles : i32
  %head_index = arith.remsi %program, %head_tiles : i32
  %is_first_tile = arith.cmpi eq, %head_index, %zero : i32
  %has_query = arith.cmpi slt, %query_index, %queries : i32
  scf.if %has_query {
    %query = arith.addi %first_query, %query_index : i32
    %time = arith.addi %q_begin, %query : i32
    %cached = arith.subi %k_length, %q_length : i32
    %position = arith.addi %cached, %query : i32
    %past_position = arith.addi %position, %one : i32
    %own_block = arith.divsi %position, %sel_block : i32
    %group_first = arith.muli %kv_head, %group : i32
    %first_member = arith.muli %head_index, %rows : i32
    %first_head = arith.addi %group_first, %first_member : i32
    %members = arith.subi %group, %first_member : i32

    // The rule for a list: it names blocks of the sequence in ascending order, and nothing follows the first -1. Blocks
    // after the query's own block are checked, but not walked, because the query attends no key of them.
    %last_key = arith.subi %k_length, %one : i32
    %last_block = arith.divsi %last_key, %sel_block : i32
    %nothing_follows = arith.constant 2147483647 : i32
    %previous_all, %walked_block, %walked_blocks, %malformed = scf.for %slot = %zero to %sel_count step %one
        iter_args(%previous = %none, %last_walked = %none, %walked = %zero, %is_bad = %no) -> (i32, i32, i32, i1) : i32 {
      %block = tile.load_scalar %block_list[%q_entry, %time, %kv_head, %slot] : !tile.view<i32, 4>
      %is_none = arith.cmpi eq, %block, %none : i32
      %follows = arith.cmpi sgt, %block, %previous : i32
      %is_of_sequence = arith.cmpi sle, %block, %last_block : i32
      %is_block = arith.andi %follows, %is_of_sequence : i1
      %is_right = arith.ori %is_none, %is_block : i1
      %is_past = arith.cmpi sle, %block, %own_block : i32
      %is_walked = arith.andi %is_block, %is_past : i1
      %walked_more = arith.addi %walked, %one : i32
      %walked_next = arith.select %is_walked, %walked_more, %walked : i32
      %last_walked_next = arith.select %is_walked, %block, %last_walked : i32
      %previous_next = arith.select %is_none, %nothing_follows, %block : i32
      %is_bad_next = arith.select %is_right, %is_bad, %yes : i1
      scf.yield %previous_next, %last_walked_next, %walked_next, %is_bad_next : i32, i32, i32, i1
    }
    %malformed_list = arith.constant ${status_malformed_list} : i32
    %tells = arith.andi %malformed, %is_first_tile : i1
    tile.report %tells, %malformed_list, %batch to %status : !tile.view<i32, 1>

    // The tiles to walk: all tiles of each block, but of the query's own block only the tiles that begin at the query's
    // position or before it.
    %own_first = arith.muli %own_block, %sel_block : i32
    %own_keys = arith.subi %past_position, %own_first : i32
    %tile_less_one = arith.subi %key_tile, %one : i32
    %own_rounded = arith.addi %own_keys, %tile_less_one : i32
    %own_parts = arith.divsi %own_rounded, %key_tile : i32
    %parts_after = arith.subi %parts, %own_parts : i32
    %has_own = arith.cmpi eq, %walked_block, %own_block : i32
    %left_out = arith.select %has_own, %parts_after, %zero : i32
    %all_parts = arith.muli %walked_blocks, %parts : i32
    %some_parts = arith.subi %all_parts, %left_out : i32
    %past_step = arith.select %malformed, %zero, %some_parts : i32

    //! part softmax_begin

    %q_tile = tile.load %q rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%q_entry, %time, %head] if %exists
    } columns(${qk_dim}) {tile.stay_in_shared = ${queries_shared} : i1} : !tile.view<${element}, 3> -> tensor<${rows}x${qk_pad}x${element}>

    %m_all, %l_all, %o_all, %reads_all = scf.for %step = %zero to %past_step step %one
        iter_args(%m = %minus_inf_row, %l = %zero_row, %o = %no_output, %read = %zero)
        -> (tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}x${v_pad}xf32>, i32) : i32 {
      // The keys of this step: key_tile keys, or fewer at the end of the block or at the query's position.
      %slot = arith.divsi %step, %parts : i32
      %part = arith.remsi %step, %parts : i32
      %block = tile.load_scalar %block_list[%q_entry, %time, %kv_head, %slot] : !tile.view<i32, 4>
      %block_first = arith.muli %block, %sel_block : i32
      %part_first = arith.muli %part, %key_tile : i32
      %first_key = arith.addi %block_first, %part_first : i32
      %left_of_block = arith.subi %sel_block, %part_first : i32
      %left_of_past = arith.subi %past_position, %first_key : i32
      %left = arith.minsi %left_of_block, %left_of_past : i32
      %keys = arith.minsi %left, %key_tile : i32

      //! part key_rows tile=k_tile view=k columns=${qk_dim} padded=${qk_pad} page=${page_size}
      //! part key_rows tile=v_tile view=v columns=${v_dim} padded=${v_pad} page=${page_size}

      // Rows of the tile that hold no key are zero. Their weights are 0.
      //! part masked_scores

      // A row whose scores so far are all -inf has the maximum -inf. Its weights are taken against 0 instead, and are
      // 0.
      //! part softmax_step
      %o_next = tile.dot %p_rounded, %v_tile, %o_decayed : tensor<${rows}x${key_tile}x${mma_element}>, tensor<${key_tile}x${v_pad}x${element}> -> tensor<${rows}x${v_pad}xf32>
      %read_next = arith.addi %read, %keys : i32
      scf.yield %m_next, %l_next, %o_next, %read_next : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}x${v_pad}xf32>, i32
    } {tile.stages = ${stages} : i32}

    // A row without weight (all its scores are -inf, or the list is empty) has the result 0 and the log-sum-exp -inf.
    //! part softmax_end
    %out_tile = tile.cast %result : tensor<${rows}x${v_pad}xf32> -> tensor<${rows}x${v_pad}x${element}>
    tile.store %out_tile, %out rows(%r) {
      %exists = arith.cmpi slt, %r, %members : i32
      %head = arith.addi %first_head, %r : i32
      tile.at [%q_entry, %time, %head] if %exists
    } columns(${v_dim}) : tensor<${rows}x${v_pad}x${element}>, !tile.view<${element}, 3>

    %wants_lse = tile.present %lse : !tile.view<f32, 3>
    scf.if %wants_lse {
      //! part natural_lse
      tile.store %lse_tile, %lse rows(%r) {
        %exists = arith.cmpi slt, %r, %members : i32
        %head = arith.addi %first_head, %r : i32
        tile.at [%q_entry, %time, %head] if %exists
      } : tensor<${rows}xf32>, !tile.view<f32, 3>
    }

    %wants_reads = tile.present %reads : !tile.view<i32, 3>
    %writes_reads = arith.andi %wants_reads, %is_first_tile : i1
    scf.if %writes_reads {
      %reads_row = tile.splat %reads_all : tensor<${rows}xi32>
      tile.store %reads_row, %reads rows(%r) {
        %is_first = arith.cmpi eq, %r, %zero : i32
        tile.at [%q_entry, %time, %kv_head] if %is_first
      } : tensor<${rows}xi32>, !tile.view<i32, 3>
    }
  }
  return
}
