// Loads split `n` of the four splits from `first_split` on.
%split_${n} = arith.addi %first_split, %${offset} : i32
%is_split_${n} = arith.cmpi slt, %split_${n}, %past_win_split : i32
%o_${n} = tile.load %o_slots rows(%r) {
  %is_member = arith.cmpi slt, %r, %members : i32
  %exists = arith.andi %is_member, %is_split_${n} : i1
  %head = arith.addi %first_head, %r : i32
  tile.at [%split_${n}, %row_time, %head] if %exists
} chunk(%chunk of %v_dim) : !tile.view<f32, 3> -> tensor<${rows}x${column_tile}xf32>
%lse_${n} = tile.load %lse_split rows(%r) {
  %is_member = arith.cmpi slt, %r, %members : i32
  %exists = arith.andi %is_member, %is_split_${n} : i1
  %head = arith.addi %first_head, %r : i32
  tile.at [%split_${n}, %row_time, %head] if %exists
} : !tile.view<f32, 3> -> tensor<${rows}xf32>
