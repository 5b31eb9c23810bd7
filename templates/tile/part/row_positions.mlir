// The position of the query of each row, and the first key behind those that it sees.
%row_in_tile = tile.iota 0 : tensor<${query_tile}xi32>
%first_row_tile = tile.splat %first_row : tensor<${query_tile}xi32>
%group_tile = tile.splat %group : tensor<${query_tile}xi32>
%earlier_tile = tile.splat %earlier : tensor<${query_tile}xi32>
%row_index = arith.addi %first_row_tile, %row_in_tile : tensor<${query_tile}xi32>
%query_index = arith.divsi %row_index, %group_tile : tensor<${query_tile}xi32>
%position = arith.addi %earlier_tile, %query_index : tensor<${query_tile}xi32>
%sight_tile = arith.constant dense<${sight}> : tensor<${query_tile}xi32>
%key_stride_tile = arith.constant dense<${key_stride}> : tensor<${query_tile}xi32>
%row_past_token = arith.addi %position, %sight_tile : tensor<${query_tile}xi32>
%row_past_key = arith.divsi %row_past_token, %key_stride_tile : tensor<${query_tile}xi32>
