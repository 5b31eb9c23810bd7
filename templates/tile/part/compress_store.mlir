// Stores the blocks of the tile.
%out = arith.select %of_keys, %k_comp, %v_comp : !tile.view<${element}, 3, ${comp_page}>
tile.store %result, %out rows(%r) {
  %block = arith.addi %first_block, %r : i32
  %exists = arith.cmpi slt, %block, %past_block : i32
  %block_row = arith.addi %blocks_begin, %block : i32
  tile.at [%blocks_entry, %block_row, %kv_head] if %exists
} chunk(%chunk of %columns) : tensor<${block_tile}x${column_tile}x${element}>, !tile.view<${element}, 3, ${comp_page}>
