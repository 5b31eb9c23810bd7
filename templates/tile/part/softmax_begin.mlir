// The state of the online softmax before the first key.
%scale_row = tile.splat %scale_log2 : tensor<${rows}xf32>
%scale = tile.splat %scale_log2 : tensor<${rows}x${key_tile}xf32>
%minus_inf_row = tile.splat %minus_inf : tensor<${rows}xf32>
%zero_row = tile.splat %zero_f : tensor<${rows}xf32>
%one_row = tile.splat %one_f : tensor<${rows}xf32>
%no_scores = tile.splat %zero_f : tensor<${rows}x${key_tile}xf32>
%no_output = tile.splat %zero_f : tensor<${rows}x${v_pad}xf32>
