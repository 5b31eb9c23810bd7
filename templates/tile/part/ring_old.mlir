// The token at a place of the ring before the new tokens, and whether the new blocks need it.
%place = arith.addi %first_place, %r : i32
%behind = arith.subi %newest_before, %place : i32
%turns = arith.remsi %behind, %cmp_block : i32
%token = arith.subi %newest_before, %turns : i32
%is_place = arith.cmpi slt, %place, %cmp_block : i32
%is_written = arith.cmpi sge, %behind, %zero : i32
%is_needed = arith.cmpi sge, %token, %first_staged : i32
%is_there = arith.andi %is_place, %is_written : i1
%is_wanted = arith.andi %is_needed, %stages : i1
%exists = arith.andi %is_there, %is_wanted : i1
