// The query and the head of row `r` of a tile whose rows are pairs of a query and a head of the group, heads fastest.
%row = arith.addi %first_row, %r : i32
%exists = arith.cmpi slt, %row, %rows : i32
%query = arith.divsi %row, %group : i32
%time = arith.addi %first_time, %query : i32
%member = arith.remsi %row, %group : i32
%head = arith.addi %first_head, %member : i32
