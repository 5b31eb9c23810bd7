// Loads a tile with the first `keys` keys or values from `first_key` on.
%${tile} = tile.load %${view} rows(%r) {
  %exists = arith.cmpi slt, %r, %keys : i32
  %index = arith.addi %first_key, %r : i32
  %key_time = arith.addi %k_begin, %index : i32
  tile.at [%k_entry, %key_time, %kv_head] if %exists
} columns(${columns}) : !tile.view<${element}, 3, ${page}> -> tensor<${key_tile}x${padded}x${element}>
