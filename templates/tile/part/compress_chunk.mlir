// The chunk of columns that a program computes. The chunks of K come first, then the chunks of V. Neighbouring programs
// read the same tokens.
%program = tile.program_id x
%kv_head = tile.program_id y
%batch = tile.program_id z

%k_chunks = arith.constant ${k_chunks} : i32
%v_chunks = arith.constant ${v_chunks} : i32
%chunks = arith.addi %k_chunks, %v_chunks : i32
%part = arith.remsi %program, %chunks : i32
%tile = arith.divsi %program, %chunks : i32
%of_keys = arith.cmpi slt, %part, %k_chunks : i32
%v_part = arith.subi %part, %k_chunks : i32
%chunk = arith.select %of_keys, %part, %v_part : i32
%qk_dim = arith.constant ${qk_dim} : i32
%v_dim = arith.constant ${v_dim} : i32
%columns = arith.select %of_keys, %qk_dim, %v_dim : i32
