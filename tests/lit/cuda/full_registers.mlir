// A kernel whose loop carries nearly as many registers as a thread has asks for one block on a multiprocessor.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: __launch_bounds__(kThreads, 1)
// CHECK-NEXT: full(
func.func @full(%x: !tile.view<f32, 1>, %c: f32, %count: i32) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %start = tile.splat %c : tensor<16x448xf32>
  %all = scf.for %i = %zero to %count step %one iter_args(%a = %start) -> (tensor<16x448xf32>) : i32 {
    %next = arith.addf %a, %a : tensor<16x448xf32>
    scf.yield %next : tensor<16x448xf32>
  }
  %always = arith.constant true
  tile.store %all, %x rows(%r) { tile.at [%r] if %always } : tensor<16x448xf32>, !tile.view<f32, 1>
  return
}

