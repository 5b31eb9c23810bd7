// The online softmax takes the scores `s` of a tile of keys. A row whose scores so far are all -inf has the maximum -inf.
// Its weights are taken against 0 instead, and are 0.
%s_max = tile.reduce max %s : tensor<${rows}x${key_tile}xf32> -> tensor<${rows}xf32>
%m_next = arith.maxnumf %m, %s_max : tensor<${rows}xf32>
%m_empty = arith.cmpf oeq, %m_next, %minus_inf_row : tensor<${rows}xf32>
%m_finite = arith.select %m_empty, %zero_row, %m_next : tensor<${rows}xi1>, tensor<${rows}xf32>
%m_scaled = arith.mulf %m_finite, %scale_row : tensor<${rows}xf32>
%m_minus = arith.negf %m_scaled : tensor<${rows}xf32>
// The decay is computed from the difference of the maxima. If the maximum does not change, the decay is exactly
// 1, and earlier weights keep all their bits however many tiles follow.
%m_below = arith.subf %m, %m_finite : tensor<${rows}xf32>
%decay_log2 = arith.mulf %m_below, %scale_row : tensor<${rows}xf32>
%decay = math.exp2 %decay_log2 : tensor<${rows}xf32>
%m_wide = tile.broadcast %m_minus : tensor<${rows}xf32> -> tensor<${rows}x${key_tile}xf32>
%p_log2 = math.fma %s, %scale, %m_wide : tensor<${rows}x${key_tile}xf32>
%p = math.exp2 %p_log2 : tensor<${rows}x${key_tile}xf32>
%p_sum = tile.reduce add %p : tensor<${rows}x${key_tile}xf32> -> tensor<${rows}xf32>
%l_next = math.fma %l, %decay, %p_sum : tensor<${rows}xf32>

%decay_wide = tile.broadcast %decay : tensor<${rows}xf32> -> tensor<${rows}x${v_pad}xf32>
%o_decayed = arith.mulf %o, %decay_wide : tensor<${rows}x${v_pad}xf32>
%p_rounded = tile.cast %p : tensor<${rows}x${key_tile}xf32> -> tensor<${rows}x${key_tile}x${mma_element}>
