// Adds split `n` to the sum of the splits before it.
%of_cmp_${n} = arith.cmpi slt, %split_${n}, %past_cmp_split : i32
%of_cmp_or_sel_${n} = arith.cmpi slt, %split_${n}, %past_sel_split : i32
%is_row_${n} = tile.splat %is_split_${n} : tensor<${rows}xi1>
%cmp_row_${n} = tile.splat %of_cmp_${n} : tensor<${rows}xi1>
%cmp_or_sel_row_${n} = tile.splat %of_cmp_or_sel_${n} : tensor<${rows}xi1>
%m_sel_or_win_${n} = arith.select %cmp_or_sel_row_${n}, %m_sel_finite, %m_win_finite : tensor<${rows}xi1>, tensor<${rows}xf32>
%m_${n} = arith.select %cmp_row_${n}, %m_cmp_finite, %m_sel_or_win_${n} : tensor<${rows}xi1>, tensor<${rows}xf32>
%gated_sel_or_win_${n} = arith.select %cmp_or_sel_row_${n}, %gated_sel, %gated_win : tensor<${rows}xi1>, tensor<${rows}xf32>
%gated_${n} = arith.select %cmp_row_${n}, %gated_cmp, %gated_sel_or_win_${n} : tensor<${rows}xi1>, tensor<${rows}xf32>
%below_${n} = arith.subf %lse_${n}, %m_${n} : tensor<${rows}xf32>
%share_${n} = math.exp2 %below_${n} : tensor<${rows}xf32>
%gated_share_${n} = arith.mulf %share_${n}, %gated_${n} : tensor<${rows}xf32>
%weight_${n} = arith.select %is_row_${n}, %gated_share_${n}, %zero_row : tensor<${rows}xi1>, tensor<${rows}xf32>
%weight_wide_${n} = tile.broadcast %weight_${n} : tensor<${rows}xf32> -> tensor<${rows}x${column_tile}xf32>
%sum_${n} = math.fma %weight_wide_${n}, %o_${n}, %${before} : tensor<${rows}x${column_tile}xf32>
