// The operator `sequences`: writes the table that says where each sequence of a packed batch lies, and checks the
// lengths. It runs once before the kernels that read the table. One program checks one sequence and writes its row of
// the table:
//   q_begin, q_length, k_begin, k_length, c_begin, c_length, the position of the first key, 0
// c counts compressed blocks. If a sequence breaks a rule, the program reports it and writes a row of zeros, so the
// other kernels find no query and no key in it. The lengths are device data and may be anything, so no number is used
// in arithmetic before it was checked.
//
//! template sequences
//! operator sequences
//! fixed   dtype, cmp_block, cmp_stride, key_offset
//! let     overlap = cmp_block - cmp_stride
// If cmp_block is 1, every token is a block. Blocks then lie where the tokens lie, and no sum over earlier sequences is
// needed. Plans that compress nothing ask for it.
//! let     blocks_are_tokens = cmp_block == 1
//! grid    batch, 1, 1
//! threads 32

func.func @sequences(
    %cu_seqlens_q: !tile.view<i32, 1>, %cu_seqlens_k: !tile.view<i32, 1>,
    %total_q: i32, %total_k: i32, %total_c: i32, %max_seqlen_q: i32, %max_seqlen_k: i32,
    %sequences: !tile.view<i32, 2>, %status: !tile.view<i32, 1>,
    %k_offset: !tile.view<i32, 1> {tile.if_used}) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %blocks_are_tokens = arith.constant ${blocks_are_tokens} : i1
  %has_key_offset = arith.constant ${key_offset} : i1
  %overlap = arith.constant ${overlap} : i32
  %key_stride = arith.constant ${cmp_stride} : i32
  %bad_cu_seqlens_q = arith.constant ${status_bad_cu_seqlens_q} : i32
  %bad_cu_seqlens_k = arith.constant ${status_bad_cu_seqlens_k} : i32
  %more_queries_than_keys = arith.constant ${status_more_queries_than_keys} : i32
  %queries_above_maximum = arith.constant ${status_seqlen_q_over_maximum} : i32
  %keys_above_maximum = arith.constant ${status_seqlen_k_over_maximum} : i32
  %blocks_above_total = arith.constant ${status_blocks_over_tensor} : i32

  %batch = tile.program_id x

  // The loop runs over the earlier sequences up to this one. Of the earlier sequences only the number of blocks
  // matters. The last iteration leaves the values of this sequence.
  %first_sequence = arith.select %blocks_are_tokens, %batch, %zero : i32
  %past_sequence = arith.addi %batch, %one : i32
  %code, %q_begin, %q_length, %k_begin, %k_length, %c_begin, %c_length, %blocks_in_all = scf.for %sequence = %first_sequence to %past_sequence step %one
      iter_args(%rule_before = %zero, %q_before = %zero, %queries_before = %zero, %k_before = %zero, %keys_before = %zero,
                %c_before = %zero, %own_before = %zero, %blocks = %zero)
      -> (i32, i32, i32, i32, i32, i32, i32, i32) : i32 {
    %next_sequence = arith.addi %sequence, %one : i32
    %q_first = tile.load_scalar %cu_seqlens_q[%sequence] : !tile.view<i32, 1>
    %q_end = tile.load_scalar %cu_seqlens_q[%next_sequence] : !tile.view<i32, 1>
    %k_first = tile.load_scalar %cu_seqlens_k[%sequence] : !tile.view<i32, 1>
    %k_end = tile.load_scalar %cu_seqlens_k[%next_sequence] : !tile.view<i32, 1>

    // The first sequence begins at 0. Every other sequence begins where the sequence before it ends.
    %is_first = arith.cmpi eq, %sequence, %zero : i32
    %q_latest = arith.select %is_first, %zero, %total_q : i32
    %k_latest = arith.select %is_first, %zero, %total_k : i32
    %q_negative = arith.cmpi slt, %q_first, %zero : i32
    %q_late = arith.cmpi sgt, %q_first, %q_latest : i32
    %q_decreasing = arith.cmpi slt, %q_end, %q_first : i32
    %q_outside = arith.cmpi sgt, %q_end, %total_q : i32
    %q_unordered = arith.ori %q_negative, %q_decreasing : i1
    %q_misplaced = arith.ori %q_late, %q_outside : i1
    %q_bad = arith.ori %q_unordered, %q_misplaced : i1
    %k_negative = arith.cmpi slt, %k_first, %zero : i32
    %k_late = arith.cmpi sgt, %k_first, %k_latest : i32
    %k_decreasing = arith.cmpi slt, %k_end, %k_first : i32
    %k_outside = arith.cmpi sgt, %k_end, %total_k : i32
    %k_unordered = arith.ori %k_negative, %k_decreasing : i1
    %k_misplaced = arith.ori %k_late, %k_outside : i1
    %k_bad = arith.ori %k_unordered, %k_misplaced : i1

    // `rule` is the first rule that is broken. Offsets out of order are replaced before their difference can overflow.
    %q_first_checked = arith.select %q_bad, %zero, %q_first : i32
    %q_end_checked = arith.select %q_bad, %zero, %q_end : i32
    %k_first_checked = arith.select %k_bad, %zero, %k_first : i32
    %k_end_checked = arith.select %k_bad, %zero, %k_end : i32
    %queries = arith.subi %q_end_checked, %q_first_checked : i32
    %keys = arith.subi %k_end_checked, %k_first_checked : i32
    %k_short = arith.cmpi sgt, %queries, %keys : i32
    %q_long = arith.cmpi sgt, %queries, %max_seqlen_q : i32
    %k_long = arith.cmpi sgt, %keys, %max_seqlen_k : i32

    // A block begins every `key_stride` keys. It is complete only if `overlap` more keys follow. Before the blocks of this
    // sequence come the blocks of the earlier well-formed sequences. If every token is a block, their number is not
    // summed: it is k_begin, limited to the number of blocks that so many sequences of the greatest length have.
    %keys_that_begin = arith.subi %keys, %overlap : i32
    %keys_that_count = arith.maxsi %keys_that_begin, %zero : i32
    %own_blocks = arith.divsi %keys_that_count, %key_stride : i32
    %sequence_wide = arith.extsi %sequence : i32 to i64
    %max_seqlen_k_wide = arith.extsi %max_seqlen_k : i32 to i64
    %most_before = arith.muli %sequence_wide, %max_seqlen_k_wide : i64
    %k_first_wide = arith.extsi %k_first_checked : i32 to i64
    %tokens_before_wide = arith.minsi %k_first_wide, %most_before : i64
    %tokens_before = arith.trunci %tokens_before_wide : i64 to i32
    %blocks_before = arith.select %blocks_are_tokens, %tokens_before, %blocks : i32
    %room = arith.subi %total_c, %blocks_before : i32
    %c_outside = arith.cmpi sgt, %own_blocks, %room : i32

    %c_outside_code = arith.select %c_outside, %blocks_above_total, %zero : i32
    %k_long_code = arith.select %k_long, %keys_above_maximum, %c_outside_code : i32
    %q_long_code = arith.select %q_long, %queries_above_maximum, %k_long_code : i32
    %length_code = arith.select %k_short, %more_queries_than_keys, %q_long_code : i32
    %k_code = arith.select %k_bad, %bad_cu_seqlens_k, %length_code : i32
    %rule = arith.select %q_bad, %bad_cu_seqlens_q, %k_code : i32
    %breaks_rule = arith.cmpi ne, %rule, %zero : i32
    %blocks_added = arith.select %breaks_rule, %zero, %own_blocks : i32
    %blocks_past = arith.addi %blocks_before, %blocks_added : i32
    scf.yield %rule, %q_first_checked, %queries, %k_first_checked, %keys, %blocks_before, %own_blocks, %blocks_past : i32, i32, i32, i32, i32, i32, i32, i32
  }

  // Where the first key lies. Plans that compress nothing have a `key_stride` of 1, of which each offset is a multiple.
  %first_broken, %offset = scf.if %has_key_offset -> (i32, i32) {
    //! part read_k_offset
    %offset_code = arith.select %is_bad_offset, %bad_k_offset, %zero : i32
    %lengths_break_rule = arith.cmpi ne, %code, %zero : i32
    %first_broken = arith.select %lengths_break_rule, %code, %offset_code : i32
    scf.yield %first_broken, %offset : i32, i32
  } else {
    scf.yield %code, %zero : i32, i32
  }

  %malformed = arith.cmpi ne, %first_broken, %zero : i32
  tile.report %malformed, %first_broken, %batch to %status : !tile.view<i32, 1>

  %field = tile.iota 0 : tensor<16xi32>
  %field_q_begin = arith.constant dense<${sequence_q_begin}> : tensor<16xi32>
  %field_q_length = arith.constant dense<${sequence_q_length}> : tensor<16xi32>
  %field_k_begin = arith.constant dense<${sequence_k_begin}> : tensor<16xi32>
  %field_k_length = arith.constant dense<${sequence_k_length}> : tensor<16xi32>
  %field_c_begin = arith.constant dense<${sequence_c_begin}> : tensor<16xi32>
  %field_c_length = arith.constant dense<${sequence_c_length}> : tensor<16xi32>
  %is_q_begin = arith.cmpi eq, %field, %field_q_begin : tensor<16xi32>
  %is_q_length = arith.cmpi eq, %field, %field_q_length : tensor<16xi32>
  %is_k_begin = arith.cmpi eq, %field, %field_k_begin : tensor<16xi32>
  %is_k_length = arith.cmpi eq, %field, %field_k_length : tensor<16xi32>
  %is_c_begin = arith.cmpi eq, %field, %field_c_begin : tensor<16xi32>
  %is_c_length = arith.cmpi eq, %field, %field_c_length : tensor<16xi32>
  %none = tile.splat %zero : tensor<16xi32>
  %q_begin_tile = tile.splat %q_begin : tensor<16xi32>
  %q_length_tile = tile.splat %q_length : tensor<16xi32>
  %k_begin_tile = tile.splat %k_begin : tensor<16xi32>
  %k_length_tile = tile.splat %k_length : tensor<16xi32>
  %c_begin_tile = tile.splat %c_begin : tensor<16xi32>
  %c_length_tile = tile.splat %c_length : tensor<16xi32>
  // With offsets of keys every entry is 0, and the field k_entry holds the offset.
  %rest = scf.if %has_key_offset -> (tensor<16xi32>) {
    %field_offset = arith.constant dense<${sequence_k_entry}> : tensor<16xi32>
    %is_offset = arith.cmpi eq, %field, %field_offset : tensor<16xi32>
    %offset_tile = tile.splat %offset : tensor<16xi32>
    %from_offset = arith.select %is_offset, %offset_tile, %none : tensor<16xi1>, tensor<16xi32>
    scf.yield %from_offset : tensor<16xi32>
  } else {
    scf.yield %none : tensor<16xi32>
  }
  %from_c_length = arith.select %is_c_length, %c_length_tile, %rest : tensor<16xi1>, tensor<16xi32>
  %from_c_begin = arith.select %is_c_begin, %c_begin_tile, %from_c_length : tensor<16xi1>, tensor<16xi32>
  %from_k_length = arith.select %is_k_length, %k_length_tile, %from_c_begin : tensor<16xi1>, tensor<16xi32>
  %from_k_begin = arith.select %is_k_begin, %k_begin_tile, %from_k_length : tensor<16xi1>, tensor<16xi32>
  %from_q_length = arith.select %is_q_length, %q_length_tile, %from_k_begin : tensor<16xi1>, tensor<16xi32>
  %from_q_begin = arith.select %is_q_begin, %q_begin_tile, %from_q_length : tensor<16xi1>, tensor<16xi32>
  %malformed_tile = tile.splat %malformed : tensor<16xi1>
  %fields = arith.select %malformed_tile, %none, %from_q_begin : tensor<16xi1>, tensor<16xi32>
  tile.store %fields, %sequences rows(%r) {
    %past_fields = arith.constant ${sequence_fields} : i32
    %exists = arith.cmpi slt, %r, %past_fields : i32
    tile.at [%batch, %r] if %exists
  } : tensor<16xi32>, !tile.view<i32, 2>
  return
}
