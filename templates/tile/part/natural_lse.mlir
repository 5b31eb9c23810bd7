// The log-sum-exp of each row in base e. The log-sum-exp of a row without weight is -inf.
%ln_2 = arith.constant 0.693147180559945 : f32
%ln_2_row = tile.splat %ln_2 : tensor<${rows}xf32>
%m_log2 = arith.mulf %m_all, %scale_row : tensor<${rows}xf32>
%l_log2 = math.log2 %l_all : tensor<${rows}xf32>
%weight_log2 = arith.addf %m_log2, %l_log2 : tensor<${rows}xf32>
%weight_ln = arith.mulf %weight_log2, %ln_2_row : tensor<${rows}xf32>
%lse_tile = arith.select %l_zero, %minus_inf_row, %weight_ln : tensor<${rows}xi1>, tensor<${rows}xf32>
