// Copies that a branch, a store or a loop without a ring finds under way arrive before it. A pipelined loop in another:
// what the outer one copies has arrived before the inner one, which may not run at all, and no thread begins to
// overwrite it before all have left the iteration. Rows that fall, or lie unevenly, are not stepped through; several apart
// they may lie.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: load_tile<kThreads>(all_shared,
// CHECK-NEXT: commit_copies();
// CHECK-NEXT: wait_copies<0>();
// CHECK-NEXT: __syncthreads();
// CHECK-EMPTY:
// CHECK-NEXT: int32 limit;
// CHECK-NEXT: if (args.count > 16) {
// CHECK: load_tile<kThreads>(more_shared, args.k, 8, [&](int32 r) { return args.k.at(r, args.count + r / 16); });
// CHECK-NEXT: commit_copies();
// CHECK-NEXT: wait_copies<0>();
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: store_rows(
// CHECK: load_tile<kThreads>(
// CHECK-NEXT: other_shared, args.k, 8, evenly_spaced([&](int32 r) { return args.k.at((args.count + r) * 4, limit); }));
// CHECK-NEXT: commit_copies();
// CHECK-NEXT: wait_copies<0>();
// CHECK-NEXT: __syncthreads();
// CHECK-EMPTY:
// CHECK-NEXT: for (int32 block = 0;
// CHECK-NEXT: load_tile<kThreads>(q_shared, args.k, 8, evenly_spaced(
// CHECK-NEXT: commit_copies();
// CHECK: load_tile<kThreads>(k_tile_ring[stage], args.k, 8, [&](int32 r) { return args.k.at(key - r, block); });
// CHECK: for (int32 stage = 0;
// CHECK: commit_copies();
// CHECK-NEXT: }
// CHECK-NEXT: wait_copies<1>();
// CHECK-NEXT: __syncthreads();
// CHECK: for (int32 key = 0,
// CHECK-NEXT: wait_copies<0>();
// CHECK-NEXT: __syncthreads();
// CHECK: store_rows(
// CHECK-NEXT: __syncthreads();
func.func @copies(%k: !tile.view<f32, 2>, %out: !tile.view<f32, 1>, %count: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %none = tile.splat %zero_f : tensor<16xf32>
  %no_scores = tile.splat %zero_f : tensor<16x16xf32>
  %all = tile.load %k rows(%r) {
    tile.at [%r, %zero] if %always
  } : !tile.view<f32, 2> -> tensor<16x8xf32>
  %is_long = arith.cmpi sgt, %count, %step : i32
  %limit = scf.if %is_long -> (i32) {
    %product = arith.muli %count, %step : i32
    scf.yield %product : i32
  } else {
    %sum = arith.addi %count, %step : i32
    scf.yield %sum : i32
  }
  %more = tile.load %k rows(%r) {
    %part = arith.divsi %r, %step : i32
    %place = arith.addi %count, %part : i32
    tile.at [%r, %place] if %always
  } : !tile.view<f32, 2> -> tensor<16x8xf32>
  tile.store %none, %out rows(%r) {
    tile.at [%r] if %always
  } : tensor<16xf32>, !tile.view<f32, 1>
  %other = tile.load %k rows(%r) {
    %place = arith.addi %count, %r : i32
    %apart = arith.constant 4 : i32
    %far = arith.muli %place, %apart : i32
    tile.at [%far, %limit] if %always
  } : !tile.view<f32, 2> -> tensor<16x8xf32>
  scf.for %block = %zero to %limit step %step : i32 {
    %q = tile.load %k rows(%r) {
      tile.at [%r, %block] if %always
    } : !tile.view<f32, 2> -> tensor<16x8xf32>
    %sum_all = scf.for %key = %zero to %block step %step iter_args(%sum = %none) -> (tensor<16xf32>) : i32 {
      %k_tile = tile.load %k rows(%r) {
        %time = arith.subi %key, %r : i32
        tile.at [%time, %block] if %always
      } : !tile.view<f32, 2> -> tensor<16x8xf32>
      %more_scores = tile.dot %more, %k_tile, %no_scores {transpose_b} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
      %first_scores = tile.dot %all, %k_tile, %more_scores {transpose_b} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
      %other_scores = tile.dot %other, %k_tile, %first_scores {transpose_b} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
      %scores = tile.dot %q, %k_tile, %other_scores {transpose_b} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
      %row_sum = tile.reduce add %scores : tensor<16x16xf32> -> tensor<16xf32>
      %sum_next = arith.addf %sum, %row_sum : tensor<16xf32>
      scf.yield %sum_next : tensor<16xf32>
    } {tile.stages = 2 : i32}
    tile.store %sum_all, %out rows(%r) {
      tile.at [%r] if %always
    } : tensor<16xf32>, !tile.view<f32, 1>
  }
  return
}
