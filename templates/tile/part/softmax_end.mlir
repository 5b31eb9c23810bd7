// The result of the online softmax. A row without weight (all its scores are -inf, or it has no key) has the result 0.
%l_zero = arith.cmpf oeq, %l_all, %zero_row : tensor<${rows}xf32>
%l_inverse = arith.divf %one_row, %l_all : tensor<${rows}xf32>
%normalizer = arith.select %l_zero, %zero_row, %l_inverse : tensor<${rows}xi1>, tensor<${rows}xf32>
%normalizer_wide = tile.broadcast %normalizer : tensor<${rows}xf32> -> tensor<${rows}x${v_pad}xf32>
%result = arith.mulf %o_all, %normalizer_wide : tensor<${rows}x${v_pad}xf32>
