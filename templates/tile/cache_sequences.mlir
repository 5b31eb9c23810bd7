// The operator `cache_sequences`: writes the table that says where each sequence of a decoding batch lies, and checks
// that its new tokens have room. It runs once before the kernels that read the table. One program serves one sequence.
// Let L be the tokens in the cache, m the new tokens, and N_c(t) the number of compressed blocks of t tokens. The
// program writes two rows of the table (sequences.mlir has the fields). Row `sequence` serves the operators that
// attend:
//   q_begin, m, 0, L + m, 0, N_c(L + m), entry of the keys, entry of the queries
// Row `batch + sequence` serves `compress`, which finds the tokens of the new blocks in a row of their own:
//   0, 0, k_begin, tokens, N_c(L), N_c(L + m) - N_c(L), 0, entry of the blocks
// At last it writes the new length of the sequence, L + m. If a sequence breaks a rule, the program reports it, writes
// zero rows and keeps the length, so no other kernel touches the sequence. Lengths and tables are device data and may
// be anything, so no number is used in arithmetic before it was checked.
//
//! template cache_sequences
//! operator cache_sequences
//! fixed   dtype, cmp_block, cmp_stride, page_size
//! let     page_tokens = max(page_size, 1)
//! let     paged = page_size > 0
//! let     lead = cmp_block - 1
//! let     overlap = cmp_block - cmp_stride
// The fields of the row for `compress` follow the fields of the row for attention in one tile.
//! let     staged_k_begin = sequence_fields + sequence_k_begin
//! let     staged_k_length = sequence_fields + sequence_k_length
//! let     staged_c_begin = sequence_fields + sequence_c_begin
//! let     staged_c_length = sequence_fields + sequence_c_length
//! let     staged_q_entry = sequence_fields + sequence_q_entry
//! grid    batch, 1, 1
//! threads 32

func.func @cache_sequences(
    %cu_seqlens_q: !tile.view<i32, 1>, %cache_seqlens: !tile.view<i32, 1>, %block_table: !tile.view<i32, 2>,
    %seqlen_q: i32, %total_q: i32, %capacity: i32, %pages: i32, %max_seqlen_q: i32, %max_seqlen_k: i32, %batch: i32,
    %sequences: !tile.view<i32, 2>, %status: !tile.view<i32, 1>) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %no = arith.constant false
  %paged = arith.constant ${paged} : i1
  %page_tokens = arith.constant ${page_tokens} : i32
  %lead = arith.constant ${lead} : i32
  %overlap = arith.constant ${overlap} : i32
  %stride = arith.constant ${cmp_stride} : i32
  %bad_cu_seqlens_q = arith.constant ${status_bad_cu_seqlens_q} : i32
  %queries_above_maximum = arith.constant ${status_seqlen_q_over_maximum} : i32
  %keys_above_maximum = arith.constant ${status_seqlen_k_over_maximum} : i32
  %bad_cache_length = arith.constant ${status_bad_cache_seqlens} : i32
  %cache_full = arith.constant ${status_cache_full} : i32
  %bad_page = arith.constant ${status_bad_page} : i32

  %sequence = tile.program_id x

  // The new tokens. A packed tensor has them where the offsets say. Otherwise every sequence has the same number.
  %is_packed = tile.present %cu_seqlens_q : !tile.view<i32, 1>
  %q_begin, %queries, %q_bad = scf.if %is_packed -> (i32, i32, i1) {
    %next_sequence = arith.addi %sequence, %one : i32
    %q_first = tile.load_scalar %cu_seqlens_q[%sequence] : !tile.view<i32, 1>
    %q_end = tile.load_scalar %cu_seqlens_q[%next_sequence] : !tile.view<i32, 1>
    // The first sequence begins at 0. Every other sequence begins where the sequence before it ends.
    %is_first = arith.cmpi eq, %sequence, %zero : i32
    %q_latest = arith.select %is_first, %zero, %total_q : i32
    %q_negative = arith.cmpi slt, %q_first, %zero : i32
    %q_late = arith.cmpi sgt, %q_first, %q_latest : i32
    %q_decreasing = arith.cmpi slt, %q_end, %q_first : i32
    %q_outside = arith.cmpi sgt, %q_end, %total_q : i32
    %q_unordered = arith.ori %q_negative, %q_decreasing : i1
    %q_misplaced = arith.ori %q_late, %q_outside : i1
    %bad = arith.ori %q_unordered, %q_misplaced : i1
    %q_first_checked = arith.select %bad, %zero, %q_first : i32
    %q_end_checked = arith.select %bad, %zero, %q_end : i32
    %count = arith.subi %q_end_checked, %q_first_checked : i32
    scf.yield %q_first_checked, %count, %bad : i32, i32, i1
  } else {
    scf.yield %zero, %seqlen_q, %no : i32, i32, i1
  }

  // The length of the sequence in the cache. A length out of range is replaced before a sum can overflow.
  %length_given = tile.load_scalar %cache_seqlens[%sequence] : !tile.view<i32, 1>
  %length_negative = arith.cmpi slt, %length_given, %zero : i32
  %length_outside = arith.cmpi sgt, %length_given, %capacity : i32
  %length_bad = arith.ori %length_negative, %length_outside : i1
  %length = arith.select %length_bad, %zero, %length_given : i32
  %room = arith.subi %capacity, %length : i32
  %is_full = arith.cmpi sgt, %queries, %room : i32
  %queries_fit = arith.select %is_full, %zero, %queries : i32
  %tokens = arith.addi %length, %queries_fit : i32
  %q_long = arith.cmpi sgt, %queries, %max_seqlen_q : i32
  %k_long = arith.cmpi sgt, %tokens, %max_seqlen_k : i32

  // Every page that the call reads or writes must exist. 32 entries of the table are loaded at once, because each load
  // waits for memory.
  %pages_bad = scf.if %paged -> (i1) {
    %page_group = arith.constant 32 : i32
    %page_less_one = arith.subi %page_tokens, %one : i32
    %tokens_rounded = arith.addi %tokens, %page_less_one : i32
    %past_page_of_all = arith.divsi %tokens_rounded, %page_tokens : i32
    %has_new = arith.cmpi sgt, %queries_fit, %zero : i32
    %past_page = arith.select %has_new, %past_page_of_all, %zero : i32
    %last_page = arith.subi %past_page, %one : i32
    %some_bad = scf.for %first = %zero to %past_page step %page_group iter_args(%bad_before = %no) -> (i1) : i32 {
      %bad_in_group = scf.for %place = %zero to %page_group step %one iter_args(%bad_so_far = %bad_before) -> (i1) : i32 {
        %index_or_more = arith.addi %first, %place : i32
        %index = arith.minsi %index_or_more, %last_page : i32
        %page = tile.load_scalar %block_table[%sequence, %index] : !tile.view<i32, 2>
        %page_outside = arith.cmpi uge, %page, %pages : i32
        %bad_here = arith.ori %bad_so_far, %page_outside : i1
        scf.yield %bad_here : i1
      }
      scf.yield %bad_in_group : i1
    }
    scf.yield %some_bad : i1
  } else {
    scf.yield %no : i1
  }

  %page_code = arith.select %pages_bad, %bad_page, %zero : i32
  %k_long_code = arith.select %k_long, %keys_above_maximum, %page_code : i32
  %full_code = arith.select %is_full, %cache_full, %k_long_code : i32
  %q_long_code = arith.select %q_long, %queries_above_maximum, %full_code : i32
  %length_code = arith.select %length_bad, %bad_cache_length, %q_long_code : i32
  %code = arith.select %q_bad, %bad_cu_seqlens_q, %length_code : i32
  %malformed = arith.cmpi ne, %code, %zero : i32
  tile.report %malformed, %code, %sequence to %status : !tile.view<i32, 1>

  // A block begins every `stride` tokens. It is complete only if `overlap` more tokens follow.
  %begin_before = arith.subi %length, %overlap : i32
  %count_before = arith.maxsi %begin_before, %zero : i32
  %blocks_before = arith.divsi %count_before, %stride : i32
  %begin_after = arith.subi %tokens, %overlap : i32
  %count_after = arith.maxsi %begin_after, %zero : i32
  %blocks_after = arith.divsi %count_after, %stride : i32
  %new_blocks = arith.subi %blocks_after, %blocks_before : i32

  // The tokens of the new blocks are contiguous in `staged`. They include tokens before the new tokens, fewer than a
  // block of them.
  %first_staged = arith.muli %blocks_before, %stride : i32
  %staged = arith.subi %tokens, %first_staged : i32
  %dense_begin = arith.muli %sequence, %seqlen_q : i32
  %new_begin = arith.select %is_packed, %q_begin, %dense_begin : i32
  %leads = arith.muli %sequence, %lead : i32
  %staged_begin = arith.addi %new_begin, %leads : i32
  %q_entry = arith.select %is_packed, %zero, %sequence : i32

  // Both rows are written at once. The tile holds the fields of the row for attention and then the fields of the row for
  // `compress`.
  %element = tile.iota 0 : tensor<16xi32>
  %none = tile.splat %zero : tensor<16xi32>
  %at_q_begin = arith.constant dense<${sequence_q_begin}> : tensor<16xi32>
  %at_q_length = arith.constant dense<${sequence_q_length}> : tensor<16xi32>
  %at_k_length = arith.constant dense<${sequence_k_length}> : tensor<16xi32>
  %at_c_length = arith.constant dense<${sequence_c_length}> : tensor<16xi32>
  %at_k_entry = arith.constant dense<${sequence_k_entry}> : tensor<16xi32>
  %at_q_entry = arith.constant dense<${sequence_q_entry}> : tensor<16xi32>
  %at_staged_k_begin = arith.constant dense<${staged_k_begin}> : tensor<16xi32>
  %at_staged_k_length = arith.constant dense<${staged_k_length}> : tensor<16xi32>
  %at_staged_c_begin = arith.constant dense<${staged_c_begin}> : tensor<16xi32>
  %at_staged_c_length = arith.constant dense<${staged_c_length}> : tensor<16xi32>
  %at_staged_q_entry = arith.constant dense<${staged_q_entry}> : tensor<16xi32>
  %is_q_begin = arith.cmpi eq, %element, %at_q_begin : tensor<16xi32>
  %is_q_length = arith.cmpi eq, %element, %at_q_length : tensor<16xi32>
  %is_k_length = arith.cmpi eq, %element, %at_k_length : tensor<16xi32>
  %is_c_length = arith.cmpi eq, %element, %at_c_length : tensor<16xi32>
  %is_k_entry = arith.cmpi eq, %element, %at_k_entry : tensor<16xi32>
  %is_q_entry = arith.cmpi eq, %element, %at_q_entry : tensor<16xi32>
  %is_staged_k_begin = arith.cmpi eq, %element, %at_staged_k_begin : tensor<16xi32>
  %is_staged_k_length = arith.cmpi eq, %element, %at_staged_k_length : tensor<16xi32>
  %is_staged_c_begin = arith.cmpi eq, %element, %at_staged_c_begin : tensor<16xi32>
  %is_staged_c_length = arith.cmpi eq, %element, %at_staged_c_length : tensor<16xi32>
  %is_staged_q_entry = arith.cmpi eq, %element, %at_staged_q_entry : tensor<16xi32>
  %q_begin_tile = tile.splat %q_begin : tensor<16xi32>
  %queries_tile = tile.splat %queries_fit : tensor<16xi32>
  %tokens_tile = tile.splat %tokens : tensor<16xi32>
  %blocks_after_tile = tile.splat %blocks_after : tensor<16xi32>
  %sequence_tile = tile.splat %sequence : tensor<16xi32>
  %q_entry_tile = tile.splat %q_entry : tensor<16xi32>
  %staged_begin_tile = tile.splat %staged_begin : tensor<16xi32>
  %staged_tile = tile.splat %staged : tensor<16xi32>
  %blocks_before_tile = tile.splat %blocks_before : tensor<16xi32>
  %new_blocks_tile = tile.splat %new_blocks : tensor<16xi32>
  %with_q_begin = arith.select %is_q_begin, %q_begin_tile, %none : tensor<16xi1>, tensor<16xi32>
  %with_q_length = arith.select %is_q_length, %queries_tile, %with_q_begin : tensor<16xi1>, tensor<16xi32>
  %with_k_length = arith.select %is_k_length, %tokens_tile, %with_q_length : tensor<16xi1>, tensor<16xi32>
  %with_c_length = arith.select %is_c_length, %blocks_after_tile, %with_k_length : tensor<16xi1>, tensor<16xi32>
  %with_k_entry = arith.select %is_k_entry, %sequence_tile, %with_c_length : tensor<16xi1>, tensor<16xi32>
  %with_q_entry = arith.select %is_q_entry, %q_entry_tile, %with_k_entry : tensor<16xi1>, tensor<16xi32>
  %with_staged_k_begin = arith.select %is_staged_k_begin, %staged_begin_tile, %with_q_entry : tensor<16xi1>, tensor<16xi32>
  %with_staged_k_length = arith.select %is_staged_k_length, %staged_tile, %with_staged_k_begin : tensor<16xi1>, tensor<16xi32>
  %with_staged_c_begin = arith.select %is_staged_c_begin, %blocks_before_tile, %with_staged_k_length : tensor<16xi1>, tensor<16xi32>
  %with_staged_c_length = arith.select %is_staged_c_length, %new_blocks_tile, %with_staged_c_begin : tensor<16xi1>, tensor<16xi32>
  %with_staged_q_entry = arith.select %is_staged_q_entry, %sequence_tile, %with_staged_c_length : tensor<16xi1>, tensor<16xi32>
  %malformed_tile = tile.splat %malformed : tensor<16xi1>
  %fields = arith.select %malformed_tile, %none, %with_staged_q_entry : tensor<16xi1>, tensor<16xi32>
  tile.store %fields, %sequences rows(%r) {
    %fields_of_row = arith.constant ${sequence_fields} : i32
    %row_of_pair = arith.divsi %r, %fields_of_row : i32
    %field = arith.remsi %r, %fields_of_row : i32
    %rows_before = arith.muli %row_of_pair, %batch : i32
    %row = arith.addi %rows_before, %sequence : i32
    %exists = arith.cmpi sge, %r, %zero : i32
    tile.at [%row, %field] if %exists
  } : tensor<16xi32>, !tile.view<i32, 2>

  %grows = arith.cmpi eq, %code, %zero : i32
  tile.store %tokens_tile, %cache_seqlens rows(%r) {
    %is_first_row = arith.cmpi eq, %r, %zero : i32
    %exists = arith.andi %is_first_row, %grows : i1
    tile.at [%sequence] if %exists
  } : tensor<16xi32>, !tile.view<i32, 1>
  return
}
