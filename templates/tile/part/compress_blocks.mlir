// Where a sequence and its blocks lie. A packed launch reads it from a table whose lengths were checked.
%entry, %blocks_entry, %begin, %blocks_begin, %blocks = scf.if %packed -> (i32, i32, i32, i32, i32) {
  %field_k_begin = arith.constant ${sequence_k_begin} : i32
  %field_c_begin = arith.constant ${sequence_c_begin} : i32
  %field_c_length = arith.constant ${sequence_c_length} : i32
  %field_k_entry = arith.constant ${sequence_k_entry} : i32
  %field_q_entry = arith.constant ${sequence_q_entry} : i32
  %k_begin = tile.load_scalar %sequences[%batch, %field_k_begin] : !tile.view<i32, 2>
  %c_begin = tile.load_scalar %sequences[%batch, %field_c_begin] : !tile.view<i32, 2>
  %c_length = tile.load_scalar %sequences[%batch, %field_c_length] : !tile.view<i32, 2>
  %k_entry = tile.load_scalar %sequences[%batch, %field_k_entry] : !tile.view<i32, 2>
  %c_entry = tile.load_scalar %sequences[%batch, %field_q_entry] : !tile.view<i32, 2>
  scf.yield %k_entry, %c_entry, %k_begin, %c_begin, %c_length : i32, i32, i32, i32, i32
} else {
  %is_short = arith.cmpi slt, %seqlen_k, %cmp_block : i32
  %later = arith.subi %seqlen_k, %cmp_block : i32
  %strides = arith.divsi %later, %cmp_stride : i32
  %whole = arith.addi %strides, %one : i32
  %c_length = arith.select %is_short, %zero, %whole : i32
  scf.yield %batch, %batch, %zero, %zero, %c_length : i32, i32, i32, i32, i32
}

%first_block = arith.muli %tile, %block_tile : i32
%has_blocks = arith.cmpi slt, %first_block, %blocks : i32
%wants_k = tile.present %k_comp : !tile.view<${element}, 3, ${comp_page}>
%wants_v = tile.present %v_comp : !tile.view<${element}, 3, ${comp_page}>
%wanted = arith.select %of_keys, %wants_k, %wants_v : i1
%works = arith.andi %has_blocks, %wanted : i1
