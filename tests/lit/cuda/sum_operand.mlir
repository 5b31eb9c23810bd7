// The rests of a gradient, in small: rounded numbers are the left side of a product, and a product with ones sums them. The
// keys that are copied behind the loop lie in its ring.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

func.func @rests(%k: !tile.view<bf16, 1>, %x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %keys: i32) attributes {tile.warps = 1 : i32} {
  %yes = arith.constant true
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %zero_f = arith.constant 0.0 : f32
  %none = tile.splat %zero_f : tensor<16x64xf32>
  %no_rest = tile.splat %zero_f : tensor<16xf32>
  //      CHECK:  const Ring<SharedTile<bf16, 32, 64>, 2> k_tile_ring(shared_memory);
  // CHECK-NEXT:  const SharedTile<bf16, 16, 64> some_shared(shared_memory);
  %ds = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16x32xf32>
  //      CHECK:    const auto rounded = map<Fragment<bf16, 16, 32, kWarps>>([&](float ds) { return ds; }, ds);
  // CHECK-NEXT:    dq = dot(rounded, k_tile, dq);
  // CHECK-NEXT:    const auto sum = sum_operand(rounded);
  // CHECK-NEXT:    rest = map<RowVector<float, 16, kWarps>>([&](float rest, float sum) { return rest + sum; }, rest, sum);
  // CHECK-NEXT:  }
  // CHECK-NEXT:  __syncthreads();
  // CHECK-NEXT:  load_tile<kThreads>(some_shared, args.k, 64, evenly_spaced([&](int32 r) { return args.k.at(r); }));
  %dq, %rest = scf.for %at = %zero to %keys step %step iter_args(%dq = %none, %rest = %no_rest) -> (tensor<16x64xf32>, tensor<16xf32>) : i32 {
    %k_tile = tile.load %k rows(%r) {
      %key = arith.addi %at, %r : i32
      tile.at [%key] if %yes
    } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %rounded = tile.cast %ds : tensor<16x32xf32> -> tensor<16x32xbf16>
    %dq_next = tile.dot %rounded, %k_tile, %dq : tensor<16x32xbf16>, tensor<32x64xbf16> -> tensor<16x64xf32>
    %wide = tile.cast %rounded : tensor<16x32xbf16> -> tensor<16x32xf32>
    %sum = tile.reduce add %wide : tensor<16x32xf32> -> tensor<16xf32>
    %rest_next = arith.addf %rest, %sum : tensor<16xf32>
    scf.yield %dq_next, %rest_next : tensor<16x64xf32>, tensor<16xf32>
  } {tile.stages = 2 : i32}
  %some = tile.load %k rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<16x64xbf16>
  %wide_rest = tile.broadcast %rest : tensor<16xf32> -> tensor<16x16xf32>
  %left = tile.cast %wide_rest : tensor<16x16xf32> -> tensor<16x16xbf16>
  %all = tile.dot %left, %some, %dq : tensor<16x16xbf16>, tensor<16x64xbf16> -> tensor<16x64xf32>
  tile.store %all, %y rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16x64xf32>, !tile.view<f32, 1>
  return
}
