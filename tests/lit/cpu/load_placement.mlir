// Loads go to where their tiles are first read.
// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse --split-input-file | FileCheck %s

// %v is loaded when the first product is done, into the place of %k: %p, %k and the product take 1024 bytes each, the
// staging area another.
// CHECK-LABEL: func.func @first_use(
// CHECK-SAME: tile.scratch_bytes = 4096 : i64
// CHECK: llvm.intr.fma
// CHECK: scf.if
// CHECK: llvm.intr.fma
func.func @first_use(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %p = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %k = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %s = tile.dot %p, %k, %p : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %y = tile.dot %s, %v, %s : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// -----

// What a loop reads is loaded before it, once.
// CHECK-LABEL: func.func @loop(
// CHECK: scf.if
// CHECK: llvm.load {{.*}} -> f32
// CHECK: scf.for %{{.*}} : i32 {
// CHECK-NEXT: llvm.load {{.*}} -> vector<16xf32>
// CHECK-NEXT: llvm.load {{.*}} -> vector<16xf32>
// CHECK-NEXT: arith.addf
func.func @loop(%x: !tile.view<f32, 1>, %n: i32) {
  %yes = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16xf32>
  %y = scf.for %i = %zero to %n step %one iter_args(%sum = %a) -> (tensor<16xf32>) : i32 {
    %next = arith.addf %sum, %a : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

// A load stays before a store that may write what it reads: both loads (whose missing rows are zero), then both stores.
// CHECK-LABEL: func.func @order(
// CHECK: scf.for
// CHECK: } else {
// CHECK: scf.for
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: else
// CHECK: return
func.func @order(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %a = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16xf32>
  %b = tile.load %y rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16xf32>
  tile.store %a, %y rows(%r) { tile.at [%r] if %yes } : tensor<16xf32>, !tile.view<f32, 1>
  tile.store %b, %x rows(%r) { tile.at [%r] if %yes } : tensor<16xf32>, !tile.view<f32, 1>
  return
}
