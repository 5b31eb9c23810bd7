// The queries of a sequence that the launch computes: `queries` queries from time `first_time` on.
%q_past = arith.addi %q_begin, %q_length : i32
%first_time = arith.maxsi %q_begin, %query_begin : i32
%past_time = arith.minsi %q_past, %query_end : i32
%queries_or_fewer = arith.subi %past_time, %first_time : i32
%queries = arith.maxsi %queries_or_fewer, %zero : i32
%rows = arith.muli %queries, %group : i32
