// The products of the tokens of each block, in chunks, with the weights of their places.
%sums = scf.for %input_chunk = %zero to %input_chunks step %one
    iter_args(%chunk_sum = %${none}) -> (tensor<${block_tile}x${width}xf32>) : i32 {
  %first_input = arith.muli %input_chunk, %input_tile : i32
  %token_sums = scf.for %i = %zero to %cmp_block step %one
      iter_args(%sum = %chunk_sum) -> (tensor<${block_tile}x${width}xf32>) : i32 {
    %x_tile = tile.load %x rows(%r) {
      %block = arith.addi %first_block, %r : i32
      %exists = arith.cmpi slt, %block, %past_block : i32
      %block_begin = arith.muli %block, %cmp_stride : i32
      %index = arith.addi %block_begin, %i : i32
      %time = arith.addi %begin, %index : i32
      tile.at [%entry, %time, %kv_head] if %exists
    } chunk(%input_chunk of %columns) : !tile.view<${element}, 3> -> tensor<${block_tile}x${input_tile}x${element}>
    %${weights}_tile = tile.load %${weights} rows(%r) {
      %input = arith.addi %first_input, %r : i32
      %exists = arith.cmpi slt, %input, %columns : i32
      tile.at [%i, %input] if %exists
    } chunk(%${chunk} of %${of}) : !tile.view<${element}, 2> -> tensor<${input_tile}x${width}x${element}>

    %inputs = scf.if %has_pe -> (tensor<${block_tile}x${input_tile}x${mma_element}>) {
      %pe_tile = tile.load %pe rows(%r) {
        tile.at [%i] if %always
      } chunk(%input_chunk of %columns) : !tile.view<${element}, 1> -> tensor<${block_tile}x${input_tile}x${element}>
      %x_wide = tile.cast %x_tile : tensor<${block_tile}x${input_tile}x${element}> -> tensor<${block_tile}x${input_tile}xf32>
      %pe_wide = tile.cast %pe_tile : tensor<${block_tile}x${input_tile}x${element}> -> tensor<${block_tile}x${input_tile}xf32>
      %placed = arith.addf %x_wide, %pe_wide : tensor<${block_tile}x${input_tile}xf32>
      %rounded = tile.cast %placed : tensor<${block_tile}x${input_tile}xf32> -> tensor<${block_tile}x${input_tile}x${mma_element}>
      scf.yield %rounded : tensor<${block_tile}x${input_tile}x${mma_element}>
    } else {
      %same = tile.cast %x_tile : tensor<${block_tile}x${input_tile}x${element}> -> tensor<${block_tile}x${input_tile}x${mma_element}>
      scf.yield %same : tensor<${block_tile}x${input_tile}x${mma_element}>
    }
    %sum_next = tile.dot %inputs, %${weights}_tile, %sum : tensor<${block_tile}x${input_tile}x${mma_element}>, tensor<${input_tile}x${width}x${element}> -> tensor<${block_tile}x${width}xf32>
    scf.yield %sum_next : tensor<${block_tile}x${width}xf32>
  } {tile.stages = ${stages} : i32}
  scf.yield %token_sums : tensor<${block_tile}x${width}xf32>
}
