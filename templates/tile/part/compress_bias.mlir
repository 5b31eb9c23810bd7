// Adds the bias if the caller has passed one.
%${bias} = arith.select %of_keys, %${bias}_k, %${bias}_v : !tile.view<${element}, 1>
%has_${bias} = tile.present %${bias} : !tile.view<${element}, 1>
%${biased} = scf.if %has_${bias} -> (tensor<${block_tile}x${width}xf32>) {
  %bias = tile.load %${bias} rows(%r) {
    tile.at [%zero] if %always
  } chunk(%${chunk} of %${of}) : !tile.view<${element}, 1> -> tensor<${block_tile}x${width}x${element}>
  %bias_wide = tile.cast %bias : tensor<${block_tile}x${width}x${element}> -> tensor<${block_tile}x${width}xf32>
  %added = arith.addf %${sums}, %bias_wide : tensor<${block_tile}x${width}xf32>
  scf.yield %added : tensor<${block_tile}x${width}xf32>
} else {
  scf.yield %${sums} : tensor<${block_tile}x${width}xf32>
}
