// The new token that belongs at a place of the ring.
%place = arith.addi %first_place, %r : i32
%behind = arith.subi %newest, %place : i32
%turns = arith.remsi %behind, %cmp_block : i32
%token = arith.subi %newest, %turns : i32
%is_place = arith.cmpi slt, %place, %cmp_block : i32
%is_begun = arith.cmpi sge, %behind, %zero : i32
%is_new = arith.cmpi sge, %token, %before : i32
%is_there = arith.andi %is_place, %is_begun : i1
%exists = arith.andi %is_there, %is_new : i1
