// What the copies of a later iteration need is computed with them; what only they need is computed nowhere else.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

//      CHECK:  const auto fetch = [&](int32 step, int32 stage) {
// CHECK-NEXT:    const int32 block = load_scalar(args.list, step / args.parts);
// CHECK-NEXT:    const int32 first = block * 16;
// CHECK-NEXT:    load_tile<kThreads>(k_tile_ring[stage], args.k, 16, evenly_spaced([&](int32 r) {
// CHECK-NEXT:      const int32 time = first + r;
// CHECK-NEXT:      return args.k.at(time).only_if(time < args.count);
// CHECK-NEXT:    }));
// CHECK-NEXT:  };
//      CHECK:    const auto k_tile = k_tile_ring[stage];
// CHECK-EMPTY:
// CHECK-NEXT:    const int32 block = load_scalar(args.list, step / args.parts);
// CHECK-NEXT:    const int32 sum_next = sum + block;
// CHECK-NEXT:    const auto scores = dot_transposed(q_shared, k_tile, splat<Fragment<float, 16, 16, kWarps>>(0.0f));
func.func @ahead(%k: !tile.view<f32, 1>, %list: !tile.view<i32, 1>, %out: !tile.view<f32, 1>, %parts: i32, %count: i32) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %width = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %q = tile.load %k rows(%r) {
    %exists = arith.cmpi slt, %r, %count : i32
    tile.at [%r] if %exists
  } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %no_scores = tile.splat %zero_f : tensor<16x16xf32>
  %all = scf.for %step = %zero to %count step %one iter_args(%sum = %zero) -> (i32) : i32 {
    %slot = arith.divsi %step, %parts : i32
    %block = tile.load_scalar %list[%slot] : !tile.view<i32, 1>
    %first = arith.muli %block, %width : i32
    %k_tile = tile.load %k rows(%r) {
      %time = arith.addi %first, %r : i32
      %exists = arith.cmpi slt, %time, %count : i32
      tile.at [%time] if %exists
    } : !tile.view<f32, 1> -> tensor<16x16xf32>
    %sum_next = arith.addi %sum, %block : i32
    %scores = tile.dot %q, %k_tile, %no_scores {transpose_b} : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %scores, %out rows(%r) {
      %exists = arith.cmpi slt, %r, %sum_next : i32
      tile.at [%r] if %exists
    } : tensor<16x16xf32>, !tile.view<f32, 1>
    scf.yield %sum_next : i32
  } {tile.stages = 2 : i32}
  return
}
