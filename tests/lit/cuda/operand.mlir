// A left side of 16-bit types goes to registers before the pipelined loop that reads it, while the loop's first copies are
// under way: one group of them may be.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: load_tile<kThreads>(q_shared,
// CHECK-NEXT: commit_copies();
// CHECK: for (int32 stage = 0; stage < 1; ++stage) {
// CHECK: commit_copies();
// CHECK-NEXT: }
// CHECK-NEXT: wait_copies<1>();
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: const auto q = load_operand<Fragment<bf16, 16, 16, kWarps>>(q_shared);
// CHECK: for (int32 key = 0,
// CHECK: dot_transposed(q, k_tile,
func.func @operand(%k: !tile.view<bf16, 1>, %out: !tile.view<f32, 1>, %count: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %no_scores = tile.splat %zero_f : tensor<16x16xf32>
  %q = tile.load %k rows(%r) { tile.at [%r] if %always } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %all = scf.for %key = %zero to %count step %step iter_args(%scores = %no_scores) -> (tensor<16x16xf32>) : i32 {
    %k_tile = tile.load %k rows(%r) {
      %time = arith.addi %key, %r : i32
      tile.at [%time] if %always
    } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
    %next = tile.dot %q, %k_tile, %scores {transpose_b} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %all, %out rows(%r) { tile.at [%r] if %always } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}
