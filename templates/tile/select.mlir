// The operator `select`: the importance of selection blocks and the choice of the best (arXiv 2502.11089, equations 9
// to 12).
//
// The rows of a tile are queries, and its columns are selection blocks. Both kinds of block begin at multiples of
// cmp_stride. So the number of tokens of compressed block c in selection block j depends only on the distance c - j *
// (sel_block / cmp_stride). A *tap* is the set of compressed blocks at one such distance. A tap shares one product, and
// the products of all taps and heads are summed in one tile. Neither probabilities nor scores of a query go to memory.
// Only a list of its best blocks so far is kept.
//
//! template select
//! operator select
//! fixed   dtype, qk_dim, group, packed, page_size, cmp_block, cmp_stride, sel_block, sel_count
//! let     qk_pad = roundup(qk_dim, dot_step)
// The number of rows in a page of compressed keys if the cache has pages.
//! let     key_page = page_size / cmp_stride
// `inner` compressed blocks begin in a selection block. `before` of them begin before it and reach into it.
//! let     inner = sel_block / cmp_stride
//! let     cmp_strides = cmp_block / cmp_stride
//! let     before = cmp_strides - 1
// If no compressed block reaches further than the next selection block, its share of the next block is carried over,
// which saves a product. Longer compressed blocks are multiplied again for each selection block that they meet.
//! let     carries = before <= inner && before > 0
//! let     first_tap = before <= inner ? 0 : before
//! let     taps = inner + first_tap
//! choice  query_tile = 16 | 32 | 64 | 128
//! choice  block_tile = 16 | 32 | 64
//! choice  tap_tile = 1 | 2 | 4 | 5 | 8
//! choice  stages = 1 | 2 | 3
//! choice  warps = 1 | 2 | 4 | 8
//! let     tap_rows = tap_tile * block_tile
//! require tap_tile <= taps && (cpu ? warps == 1 && stages == 1 && block_tile <= 32 : query_tile % (16 * warps) == 0 && query_tile <= 32 * warps)
// Shared memory: a ring of queries, the keys of tap_tile taps, and the lists.
//! let     shared_bytes = (stages * query_tile + tap_rows) * qk_pad * dtype_bytes + (query_tile + 8) * sel_count * 8
//! require cpu || shared_bytes <= shared_limit
// Registers of a GPU thread: queries, products, scores, and the scores that are carried over.
//! let     registers = query_tile * (block_tile * (2 + carries) + (dtype_bytes == 2 ? qk_pad / 2 : 0)) / (32 * warps)
//! require cpu || registers <= 200 || (query_tile == 16 * warps && block_tile == 16)
// The cost of one score on a GPU, in cycles of a multiprocessor times 1000. It is made of four parts: the product on
// the tensor cores or in multiply-adds; the bytes that pass through shared memory; the bytes that come from memory; and
// the chain of steps of one warp with their latencies, divided by the number of warps that overlap.
//! let     row_bytes = qk_pad * dtype_bytes
//! let     product = dtype_bytes == 2 ? qk_pad * 4 / 5 : qk_pad * 14
//! let     shared_traffic = row_bytes * 8 * warps / query_tile + row_bytes * 16 / tap_rows
//! let     fetched = row_bytes * 32 / tap_rows + row_bytes * 32 / (query_tile * group)
//! let     waits = ((stages == 1 ? 2000000 : 600000) / tap_rows + 2000000 / (block_tile * taps * group)) / query_tile
//! let     resident = cpu ? 1 : max(1, min((shared_limit + 1024) / (shared_bytes + 1024), 65536 / (min(registers + 90, 255) * 32 * warps)))
//! let     chain = 4 * (product + shared_traffic / 2 + 112) / min(resident * warps, 16) + waits / resident
// The cost of one score on a CPU: multiply-adds, loads of queries and keys, and tiles that do not fit in the
// first-level cache.
//! let     cpu_bytes = 4 * (query_tile * (qk_pad + 3 * block_tile) + tap_rows * qk_pad)
//! let     cpu_score = qk_pad + 40 + qk_pad * 2 * (query_tile + tap_rows / group) / (query_tile * tap_rows) + 60000 / (query_tile * tap_rows) + cpu_bytes / 4096
//! cost    (1024 + block_tile / 2) * (cpu ? cpu_score : max(max(product, chain), max(shared_traffic, fetched)) + chain / 8)
//! grid    ceildiv(max_seqlen_q, query_tile), kv_heads, batch
//! threads 32 * warps

func.func @select(
    %q: !tile.view<${element}, 3>, %k: !tile.view<${element}, 3, ${key_page}>, %lse: !tile.view<f32, 3>, %block_list: !tile.view<i32, 4>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %seqlen_k: i32, %query_begin: i32, %query_end: i32,
    %init_blocks: i32, %local_blocks: i32, %scale_log2: f32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant -1 : i32
  %packed = arith.constant ${packed} : i1
  %carries = arith.constant ${carries} : i1
  %group = arith.constant ${group} : i32
  %cmp_block = arith.constant ${cmp_block} : i32
  %cmp_stride = arith.constant ${cmp_stride} : i32
  %sel_block = arith.constant ${sel_block} : i32
  %sel_count = arith.constant ${sel_count} : i32
  %inner = arith.constant ${inner} : i32
  %first_tap = arith.constant ${first_tap} : i32
  %some_begin_before = arith.cmpi sgt, %first_tap, %zero : i32
  %all_begin = arith.cmpi eq, %first_tap, %zero : i32
  %taps = arith.constant ${taps} : i32
  %cmp_strides = arith.constant ${cmp_strides} : i32
  %query_tile = arith.constant ${query_tile} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %tap_tile = arith.constant ${tap_tile} : i32
  %zero_f = arith.constant 0.0 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %minus_inf = arith.constant 0xFF800000 : f32

  %tile_index = tile.program_id x
  %kv_head = tile.program_id y
  %batch = tile.program_id z

  // Where this sequence lies. The table holds a malformed sequence as one without queries.
  %q_entry, %k_entry, %q_begin, %q_length, %k_length, %c_begin = scf.if %packed -> (i32, i32, i32, i32, i32, i32) {
    %field_q_begin = arith.constant ${sequence_q_begin} : i32
    %field_q_length = arith.constant ${sequence_q_length} : i32
    %field_k_length = arith.constant ${sequence_k_length} : i32
    %field_c_begin = arith.constant ${sequence_c_begin} : i32
    %field_k_entry = arith.constant ${sequence_k_entry} : i32
    %field_q_entry = arith.constant ${sequence_q_entry} : i32
    %q_begin = tile.load_scalar %sequences[%batch, %field_q_begin] : !tile.view<i32, 2>
    %q_length = tile.load_scalar %sequences[%batch, %field_q_length] : !tile.view<i32, 2>
    %k_length = tile.load_scalar %sequences[%batch, %field_k_length] : !tile.view<i32, 2>
    %c_begin = tile.load_scalar %sequences[%batch, %field_c_begin] : !tile.view<i32, 2>
    %k_entry = tile.load_scalar %sequences[%batch, %field_k_entry] : !tile.view<i32, 2>
    %q_entry = tile.load_scalar %sequences[%batch, %field_q_entry] : !tile.view<i32, 2>
    scf.yield %q_entry, %k_entry, %q_begin, %q_length, %k_length, %c_begin : i32, i32, i32, i32, i32, i32
  } else {
    scf.yield %batch, %batch, %zero, %seqlen_q, %seqlen_k, %zero : i32, i32, i32, i32, i32, i32
  }

  // The queries of this sequence whose time is in the range of the launch.
  %range_first = arith.subi %query_begin, %q_begin : i32
  %range_past = arith.subi %query_end, %q_begin : i32
  %first_of_all = arith.maxsi %range_first, %zero : i32
  %past_of_all = arith.minsi %range_past, %q_length : i32
  %queries = arith.subi %past_of_all, %first_of_all : i32
  %tile_less_one = arith.subi %query_tile, %one : i32
  %queries_rounded = arith.addi %queries, %tile_less_one : i32
  %query_tiles = arith.divsi %queries_rounded, %query_tile : i32
  %has_queries = arith.cmpi slt, %tile_index, %query_tiles : i32
  scf.if %has_queries {
    // The last queries see most blocks. They start first, so that no long program is left over at the end.
    %next_tile = arith.addi %tile_index, %one : i32
    %tile_number = arith.subi %query_tiles, %next_tile : i32
    %tile_offset = arith.muli %tile_number, %query_tile : i32
    %first_query = arith.addi %first_of_all, %tile_offset : i32
    %past_full_query = arith.addi %first_query, %query_tile : i32
    %past_query = arith.minsi %past_full_query, %past_of_all : i32
    %last_query = arith.subi %past_query, %one : i32
    %first_head = arith.muli %kv_head, %group : i32

    // Query i stands at position k_length - q_length + i. The block that holds this position is the last block that the
    // query may choose.
    %cached = arith.subi %k_length, %q_length : i32
    %first_position = arith.addi %cached, %first_query : i32
    %last_position = arith.addi %cached, %last_query : i32
    %last_block = arith.divsi %last_position, %sel_block : i32
    %past_block = arith.addi %last_block, %one : i32

    // Compressed block c is visible to a query if its last token is at the query's position or before it. This computes
    // how many blocks the first and the last query see.
    %past_cmp_block = arith.subi %cmp_block, %cmp_stride : i32
    %first_end = arith.addi %first_position, %one : i32
    %last_end = arith.addi %last_position, %one : i32
    %first_span = arith.subi %first_end, %past_cmp_block : i32
    %last_span = arith.subi %last_end, %past_cmp_block : i32
    %first_real_span = arith.maxsi %first_span, %zero : i32
    %last_real_span = arith.maxsi %last_span, %zero : i32
    %visible_to_all = arith.divsi %first_real_span, %cmp_stride : i32
    %visible_to_last = arith.divsi %last_real_span, %cmp_stride : i32

    // If no query of the tile has more blocks than the list has places, every block is chosen, whatever the scores are.
    %must_choose = arith.cmpi sgt, %past_block, %sel_count : i32
    %past_seen = arith.select %must_choose, %visible_to_last, %zero : i32

    %row_in_tile = tile.iota 0 : tensor<${query_tile}xi32>
    %first_position_row = tile.splat %first_position : tensor<${query_tile}xi32>
    %sel_block_row = tile.splat %sel_block : tensor<${query_tile}xi32>
    %cmp_stride_row = tile.splat %cmp_stride : tensor<${query_tile}xi32>
    %past_cmp_block_row = tile.splat %past_cmp_block : tensor<${query_tile}xi32>
    %one_row = tile.splat %one : tensor<${query_tile}xi32>
    %none_row = tile.splat %none : tensor<${query_tile}xi32>
    %no_blocks = tile.splat %zero : tensor<${query_tile}xi32>
    %zero_row = tile.splat %zero_f : tensor<${query_tile}xf32>
    %minus_inf_row = tile.splat %minus_inf : tensor<${query_tile}xf32>
    %no_scores = tile.splat %zero_f : tensor<${query_tile}x${block_tile}xf32>
    %scale = tile.splat %scale_log2 : tensor<${query_tile}x${block_tile}xf32>

    // The distance from the first compressed block of a tap to its last.
    %block_tile_less_one = arith.subi %block_tile, %one : i32
    %tile_span = arith.muli %block_tile_less_one, %inner : i32

    %best = tile.top_create : !tile.top<${query_tile}, ${sel_count}>
    %spilled_last = scf.for %first_block = %zero to %past_block step %block_tile
        iter_args(%spilled = %zero_row) -> (tensor<${query_tile}xf32>) : i32 {
      %first_inner = arith.muli %first_block, %inner : i32
      %first_compressed = arith.subi %first_inner, %first_tap : i32
      %own, %next = scf.for %tap_base = %zero to %taps step %tap_tile
          iter_args(%own_base = %no_scores, %next_base = %no_scores)
          -> (tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}x${block_tile}xf32>) : i32 {
        // A tap is skipped if no query sees its first compressed block. If all taps are skipped, the loop over heads
        // does nothing.
        %compressed_base = arith.addi %first_compressed, %tap_base : i32
        %taps_left = arith.subi %taps, %tap_base : i32
        %taps_full = arith.minsi %taps_left, %tap_tile : i32
        %taps_seen = arith.subi %past_seen, %compressed_base : i32
        %taps_here = arith.minsi %taps_seen, %taps_full : i32
        %has_taps = arith.cmpi sgt, %taps_here, %zero : i32
        %members = arith.select %has_taps, %group, %zero : i32

        // The compressed keys of the first tap for all blocks of the tile, then the keys of the second tap, and so on.
        %k_taps = tile.load %k rows(%r) {
          %tap = arith.divsi %r, %block_tile : i32
          %block = arith.remsi %r, %block_tile : i32
          %block_inner = arith.muli %block, %inner : i32
          %tap_compressed = arith.addi %compressed_base, %tap : i32
          %compressed = arith.addi %tap_compressed, %block_inner : i32
          %is_of_sequence = arith.cmpi sge, %compressed, %zero : i32
          %is_begun = arith.ori %is_of_sequence, %all_begin : i1
          %is_visible = arith.cmpi slt, %compressed, %past_seen : i32
          %exists = arith.andi %is_begun, %is_visible : i1
          %time = arith.addi %c_begin, %compressed : i32
          tile.at [%k_entry, %time, %kv_head] if %exists
        } columns(${qk_dim}) : !tile.view<${element}, 3, ${key_page}> -> tensor<${tap_rows}x${qk_pad}x${element}>

        %own_taps, %next_taps = scf.for %member = %zero to %members step %one
            iter_args(%own_members = %own_base, %next_members = %next_base)
            -> (tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}x${block_tile}xf32>) : i32 {
          %head = arith.addi %first_head, %member : i32
          %q_tile = tile.load %q rows(%r) {
            %query = arith.addi %first_query, %r : i32
            %exists = arith.cmpi slt, %query, %past_query : i32
            %time = arith.addi %q_begin, %query : i32
            tile.at [%q_entry, %time, %head] if %exists
          } columns(${qk_dim}) : !tile.view<${element}, 3> -> tensor<${query_tile}x${qk_pad}x${element}>
          %lse_tile = tile.load %lse rows(%r) {
            %query = arith.addi %first_query, %r : i32
            %exists = arith.cmpi slt, %query, %past_query : i32
            %time = arith.addi %q_begin, %query : i32
            tile.at [%q_entry, %time, %head] if %exists
          } : !tile.view<f32, 3> -> tensor<${query_tile}xf32>

          // A row without weight (its log-sum-exp is -inf) adds nothing to any block.
          %minus_log2_e = arith.constant -1.44269504088896 : f32
          %minus_log2_e_row = tile.splat %minus_log2_e : tensor<${query_tile}xf32>
          %is_weightless = arith.cmpf oeq, %lse_tile, %minus_inf_row : tensor<${query_tile}xf32>
          %minus_lse = arith.mulf %lse_tile, %minus_log2_e_row : tensor<${query_tile}xf32>
          %log2_norm = arith.select %is_weightless, %minus_inf_row, %minus_lse : tensor<${query_tile}xi1>, tensor<${query_tile}xf32>

          %own_head, %next_head = scf.for %tap_here = %zero to %taps_here step %one
              iter_args(%own_tap = %own_members, %next_tap = %next_members)
              -> (tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}x${block_tile}xf32>) : i32 {
            %tap_row = arith.muli %tap_here, %block_tile : i32
            %s = tile.dot %q_tile, %k_taps, %no_scores from %tap_row {transpose_b} : tensor<${query_tile}x${qk_pad}x${element}>, tensor<${tap_rows}x${qk_pad}x${element}> -> tensor<${query_tile}x${block_tile}xf32>
            %norm_wide = tile.broadcast %log2_norm : tensor<${query_tile}xf32> -> tensor<${query_tile}x${block_tile}xf32>
            %p_log2 = math.fma %s, %scale, %norm_wide : tensor<${query_tile}x${block_tile}xf32>
            %p_all = math.exp2 %p_log2 : tensor<${query_tile}x${block_tile}xf32>

            // An edge tile holds a compressed block that some row does not see, or a block number below 0.
            %compressed = arith.addi %compressed_base, %tap_here : i32
            %last_compressed = arith.addi %compressed, %tile_span : i32
            %has_hidden = arith.cmpi sge, %last_compressed, %visible_to_all : i32
            %is_unbegun = arith.cmpi slt, %compressed, %zero : i32
            %has_unbegun = arith.andi %is_unbegun, %some_begin_before : i1
            %is_edge = arith.ori %has_hidden, %has_unbegun : i1
            %p = scf.if %is_edge -> (tensor<${query_tile}x${block_tile}xf32>) {
              %column = tile.iota 1 : tensor<${query_tile}x${block_tile}xi32>
              %inner_tile = tile.splat %inner : tensor<${query_tile}x${block_tile}xi32>
              %compressed_tile = tile.splat %compressed : tensor<${query_tile}x${block_tile}xi32>
              %column_inner = arith.muli %column, %inner_tile : tensor<${query_tile}x${block_tile}xi32>
              %compressed_index = arith.addi %compressed_tile, %column_inner : tensor<${query_tile}x${block_tile}xi32>
              %position = arith.addi %first_position_row, %row_in_tile : tensor<${query_tile}xi32>
              %past_position = arith.addi %position, %one_row : tensor<${query_tile}xi32>
              %span = arith.subi %past_position, %past_cmp_block_row : tensor<${query_tile}xi32>
              %real_span = arith.maxsi %span, %no_blocks : tensor<${query_tile}xi32>
              %visible = arith.divsi %real_span, %cmp_stride_row : tensor<${query_tile}xi32>
              %visible_wide = tile.broadcast %visible : tensor<${query_tile}xi32> -> tensor<${query_tile}x${block_tile}xi32>
              %zero_tile = tile.splat %zero : tensor<${query_tile}x${block_tile}xi32>
              %is_visible = arith.cmpi slt, %compressed_index, %visible_wide : tensor<${query_tile}x${block_tile}xi32>
              %counts = scf.if %some_begin_before -> (tensor<${query_tile}x${block_tile}xi1>) {
                %is_begun = arith.cmpi sge, %compressed_index, %zero_tile : tensor<${query_tile}x${block_tile}xi32>
                %both = arith.andi %is_visible, %is_begun : tensor<${query_tile}x${block_tile}xi1>
                scf.yield %both : tensor<${query_tile}x${block_tile}xi1>
              } else {
                scf.yield %is_visible : tensor<${query_tile}x${block_tile}xi1>
              }
              %p_visible = arith.select %counts, %p_all, %no_scores : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
              scf.yield %p_visible : tensor<${query_tile}x${block_tile}xf32>
            } else {
              scf.yield %p_all : tensor<${query_tile}x${block_tile}xf32>
            }

            // `own_share`: the tokens that the compressed block shares with the selection block, in units of
            // cmp_stride. `next_share`: the tokens that lie in the next selection block.
            %tap = arith.addi %tap_base, %tap_here : i32
            %begin = arith.subi %tap, %first_tap : i32
            %end = arith.addi %begin, %cmp_strides : i32
            %own_begin = arith.maxsi %begin, %zero : i32
            %own_end = arith.minsi %end, %inner : i32
            %own_share = arith.subi %own_end, %own_begin : i32
            %own_weight = arith.sitofp %own_share : i32 to f32
            %own_weight_tile = tile.splat %own_weight : tensor<${query_tile}x${block_tile}xf32>
            %own_sum = math.fma %p, %own_weight_tile, %own_tap : tensor<${query_tile}x${block_tile}xf32>
            %next_share = arith.subi %end, %own_end : i32
            %has_next = arith.cmpi sgt, %next_share, %zero : i32
            %spills = arith.andi %has_next, %carries : i1
            %next_sum = scf.if %spills -> (tensor<${query_tile}x${block_tile}xf32>) {
              %next_weight = arith.sitofp %next_share : i32 to f32
              %next_weight_tile = tile.splat %next_weight : tensor<${query_tile}x${block_tile}xf32>
              %next_more = math.fma %p, %next_weight_tile, %next_tap : tensor<${query_tile}x${block_tile}xf32>
              scf.yield %next_more : tensor<${query_tile}x${block_tile}xf32>
            } else {
              scf.yield %next_tap : tensor<${query_tile}x${block_tile}xf32>
            }
            scf.yield %own_sum, %next_sum : tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}x${block_tile}xf32>
          }
          scf.yield %own_head, %next_head : tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}x${block_tile}xf32>
        } {tile.stages = ${stages} : i32}
        scf.yield %own_taps, %next_taps : tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}x${block_tile}xf32>
      }

      %scores, %spilled_next = scf.if %carries -> (tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}xf32>) {
        %from_previous = tile.shift %next, %spilled : tensor<${query_tile}xf32> -> tensor<${query_tile}x${block_tile}xf32>
        %both = arith.addf %own, %from_previous : tensor<${query_tile}x${block_tile}xf32>
        %to_next = tile.reduce last %next : tensor<${query_tile}x${block_tile}xf32> -> tensor<${query_tile}xf32>
        scf.yield %both, %to_next : tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}xf32>
      } else {
        scf.yield %own, %spilled : tensor<${query_tile}x${block_tile}xf32>, tensor<${query_tile}xf32>
      }

      // Blocks after the query's own block are no candidates. The first init_blocks blocks, and the last local_blocks
      // blocks up to the query's own, are chosen before all others: their score is infinity, and all other scores are
      // finite or NaN.
      %column = tile.iota 1 : tensor<${query_tile}x${block_tile}xi32>
      %first_block_tile = tile.splat %first_block : tensor<${query_tile}x${block_tile}xi32>
      %block_index = arith.addi %first_block_tile, %column : tensor<${query_tile}x${block_tile}xi32>
      %position = arith.addi %first_position_row, %row_in_tile : tensor<${query_tile}xi32>
      %own_block = arith.divsi %position, %sel_block_row : tensor<${query_tile}xi32>
      %own_block_wide = tile.broadcast %own_block : tensor<${query_tile}xi32> -> tensor<${query_tile}x${block_tile}xi32>
      %age = arith.subi %own_block_wide, %block_index : tensor<${query_tile}x${block_tile}xi32>
      %no_age = tile.splat %zero : tensor<${query_tile}x${block_tile}xi32>
      %init_tile = tile.splat %init_blocks : tensor<${query_tile}x${block_tile}xi32>
      %local_tile = tile.splat %local_blocks : tensor<${query_tile}x${block_tile}xi32>
      %is_future = arith.cmpi slt, %age, %no_age : tensor<${query_tile}x${block_tile}xi32>
      %is_init = arith.cmpi slt, %block_index, %init_tile : tensor<${query_tile}x${block_tile}xi32>
      %is_local = arith.cmpi slt, %age, %local_tile : tensor<${query_tile}x${block_tile}xi32>
      %is_forced = arith.ori %is_init, %is_local : tensor<${query_tile}x${block_tile}xi1>
      %infinity_tile = tile.splat %infinity : tensor<${query_tile}x${block_tile}xf32>
      %minus_inf_tile = tile.splat %minus_inf : tensor<${query_tile}x${block_tile}xf32>
      %greatest = arith.constant 0x7F7FFFFF : f32
      %greatest_tile = tile.splat %greatest : tensor<${query_tile}x${block_tile}xf32>
      %is_infinite = arith.cmpf oeq, %scores, %infinity_tile : tensor<${query_tile}x${block_tile}xf32>
      %unforced = arith.select %is_infinite, %greatest_tile, %scores : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
      %present = arith.select %is_forced, %infinity_tile, %unforced : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
      %candidates = arith.select %is_future, %minus_inf_tile, %present : tensor<${query_tile}x${block_tile}xi1>, tensor<${query_tile}x${block_tile}xf32>
      tile.top_insert %candidates at %first_block into %best : tensor<${query_tile}x${block_tile}xf32>, !tile.top<${query_tile}, ${sel_count}>
      scf.yield %spilled_next : tensor<${query_tile}xf32>
    }

    // The list in ascending order, with -1 behind the last block.
    %exhausted = arith.constant 2147483647 : i32
    %exhausted_row = tile.splat %exhausted : tensor<${query_tile}xi32>
    %all_slots = scf.for %slot = %zero to %sel_count step %one iter_args(%previous = %none_row) -> (tensor<${query_tile}xi32>) : i32 {
      %chosen = tile.top_next %best after %previous : !tile.top<${query_tile}, ${sel_count}> -> tensor<${query_tile}xi32>
      %is_none = arith.cmpi eq, %chosen, %exhausted_row : tensor<${query_tile}xi32>
      %listed = arith.select %is_none, %none_row, %chosen : tensor<${query_tile}xi1>, tensor<${query_tile}xi32>
      tile.store %listed, %block_list rows(%r) {
        %query = arith.addi %first_query, %r : i32
        %exists = arith.cmpi slt, %query, %past_query : i32
        %time = arith.addi %q_begin, %query : i32
        tile.at [%q_entry, %time, %kv_head, %slot] if %exists
      } : tensor<${query_tile}xi32>, !tile.view<i32, 4>
      scf.yield %chosen : tensor<${query_tile}xi32>
    }
  }
  return
}
