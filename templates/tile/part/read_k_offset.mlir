// The position of the first key of sequence `batch`, and whether it breaks a rule. It counts tokens, and a compressed
// block begins every `key_stride` tokens.
%bad_k_offset = arith.constant ${status_bad_k_offset} : i32
%most_k_offset = arith.constant ${most_k_offset} : i32
%least_k_offset = arith.subi %zero, %most_k_offset : i32
%has_offset = tile.present %k_offset : !tile.view<i32, 1>
%offset = scf.if %has_offset -> (i32) {
  %given_offset = tile.load_scalar %k_offset[%batch] : !tile.view<i32, 1>
  scf.yield %given_offset : i32
} else {
  scf.yield %zero : i32
}
%is_low_offset = arith.cmpi slt, %offset, %least_k_offset : i32
%is_high_offset = arith.cmpi sgt, %offset, %most_k_offset : i32
%offset_rest = arith.remsi %offset, %key_stride : i32
%splits_block = arith.cmpi ne, %offset_rest, %zero : i32
%is_far_offset = arith.ori %is_low_offset, %is_high_offset : i1
%is_bad_offset = arith.ori %is_far_offset, %splits_block : i1
