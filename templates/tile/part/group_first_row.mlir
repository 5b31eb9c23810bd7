// The query of row `r`, as in group_row.mlir. Only the rows of first heads of a group exist.
%row = arith.addi %first_row, %r : i32
%is_row = arith.cmpi slt, %row, %rows : i32
%query = arith.divsi %row, %group : i32
%time = arith.addi %first_time, %query : i32
%member = arith.remsi %row, %group : i32
%is_first_head = arith.cmpi eq, %member, %zero : i32
%exists = arith.andi %is_row, %is_first_head : i1
