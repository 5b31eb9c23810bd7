// The weights of the three branches: the given numbers, or the sigmoid of each number, or one softmax over all three
// numbers. The softmax counts the gate of a branch that is off too.
%x_cmp = tile.cast %gate_0 : tensor<${rows}x${element}> -> tensor<${rows}xf32>
%x_sel = tile.cast %gate_1 : tensor<${rows}x${element}> -> tensor<${rows}xf32>
%x_win = tile.cast %gate_2 : tensor<${rows}x${element}> -> tensor<${rows}xf32>

%log2_e = arith.constant dense<1.44269504088896> : tensor<${rows}xf32>
%minus_log2_e = arith.constant dense<-1.44269504088896> : tensor<${rows}xf32>
%one_row = arith.constant dense<1.0> : tensor<${rows}xf32>
%g_cmp, %g_sel, %g_win = scf.if %gate_softmax -> (tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>) {
  %x_max_2 = arith.maxnumf %x_cmp, %x_sel : tensor<${rows}xf32>
  %x_max = arith.maxnumf %x_max_2, %x_win : tensor<${rows}xf32>
  %cmp_below = arith.subf %x_cmp, %x_max : tensor<${rows}xf32>
  %sel_below = arith.subf %x_sel, %x_max : tensor<${rows}xf32>
  %win_below = arith.subf %x_win, %x_max : tensor<${rows}xf32>
  %cmp_log2 = arith.mulf %cmp_below, %log2_e : tensor<${rows}xf32>
  %sel_log2 = arith.mulf %sel_below, %log2_e : tensor<${rows}xf32>
  %win_log2 = arith.mulf %win_below, %log2_e : tensor<${rows}xf32>
  %e_cmp = math.exp2 %cmp_log2 : tensor<${rows}xf32>
  %e_sel = math.exp2 %sel_log2 : tensor<${rows}xf32>
  %e_win = math.exp2 %win_log2 : tensor<${rows}xf32>
  %e_sum_2 = arith.addf %e_cmp, %e_sel : tensor<${rows}xf32>
  %e_sum = arith.addf %e_sum_2, %e_win : tensor<${rows}xf32>
  %softmax_cmp = arith.divf %e_cmp, %e_sum : tensor<${rows}xf32>
  %softmax_sel = arith.divf %e_sel, %e_sum : tensor<${rows}xf32>
  %softmax_win = arith.divf %e_win, %e_sum : tensor<${rows}xf32>
  scf.yield %softmax_cmp, %softmax_sel, %softmax_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
} else {
  %sigmoid_cmp, %sigmoid_sel, %sigmoid_win = scf.if %gate_sigmoid -> (tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>) {
    %cmp_log2 = arith.mulf %x_cmp, %minus_log2_e : tensor<${rows}xf32>
    %sel_log2 = arith.mulf %x_sel, %minus_log2_e : tensor<${rows}xf32>
    %win_log2 = arith.mulf %x_win, %minus_log2_e : tensor<${rows}xf32>
    %e_cmp = math.exp2 %cmp_log2 : tensor<${rows}xf32>
    %e_sel = math.exp2 %sel_log2 : tensor<${rows}xf32>
    %e_win = math.exp2 %win_log2 : tensor<${rows}xf32>
    %cmp_past_one = arith.addf %one_row, %e_cmp : tensor<${rows}xf32>
    %sel_past_one = arith.addf %one_row, %e_sel : tensor<${rows}xf32>
    %win_past_one = arith.addf %one_row, %e_win : tensor<${rows}xf32>
    %logistic_cmp = arith.divf %one_row, %cmp_past_one : tensor<${rows}xf32>
    %logistic_sel = arith.divf %one_row, %sel_past_one : tensor<${rows}xf32>
    %logistic_win = arith.divf %one_row, %win_past_one : tensor<${rows}xf32>
    scf.yield %logistic_cmp, %logistic_sel, %logistic_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
  } else {
    scf.yield %x_cmp, %x_sel, %x_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
  }
  scf.yield %sigmoid_cmp, %sigmoid_sel, %sigmoid_win : tensor<${rows}xf32>, tensor<${rows}xf32>, tensor<${rows}xf32>
}
