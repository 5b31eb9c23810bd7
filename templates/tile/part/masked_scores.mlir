// The scores of the first `keys` keys of a tile. Rows of the tile that hold no key are zero, and their weights are 0.
%s_all = tile.dot %q_tile, %k_tile, %no_scores {transpose_b} : tensor<${rows}x${qk_pad}x${element}>, tensor<${key_tile}x${qk_pad}x${element}> -> tensor<${rows}x${key_tile}xf32>
%is_partial = arith.cmpi slt, %keys, %key_tile : i32
%s = scf.if %is_partial -> (tensor<${rows}x${key_tile}xf32>) {
  %column = tile.iota 1 : tensor<${rows}x${key_tile}xi32>
  %keys_wide = tile.splat %keys : tensor<${rows}x${key_tile}xi32>
  %is_key = arith.cmpi slt, %column, %keys_wide : tensor<${rows}x${key_tile}xi32>
  %minus_inf_tile = tile.splat %minus_inf : tensor<${rows}x${key_tile}xf32>
  %s_keys = arith.select %is_key, %s_all, %minus_inf_tile : tensor<${rows}x${key_tile}xi1>, tensor<${rows}x${key_tile}xf32>
  scf.yield %s_keys : tensor<${rows}x${key_tile}xf32>
} else {
  scf.yield %s_all : tensor<${rows}x${key_tile}xf32>
}
