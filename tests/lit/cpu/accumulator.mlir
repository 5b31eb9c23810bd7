// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse --split-input-file | FileCheck %s

// A map that only dots start from is applied to the sums they load; no tile of it exists, and both arms work in %o's place: %o and
// %v take 2048 bytes each, %p 1024, the row 64, the staging area 2048.
// CHECK-LABEL: func.func @decayed(
// CHECK-SAME: tile.scratch_bytes = 7232 : i64
// CHECK: scf.if
// CHECK: %[[SCALED:.*]] = arith.mulf %{{.*}} : vector<16xf32>
// CHECK: scf.for {{.*}} %[[SCALED]],
// CHECK: llvm.intr.fma
// CHECK: } else {
// CHECK: arith.mulf
// CHECK: llvm.intr.fma
// CHECK: return
func.func @decayed(%x: !tile.view<f32, 1>, %is_edge: i1) {
  %yes = arith.constant true
  %o = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x32xf32>
  %p = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x32xf32>
  %decay = tile.reduce max %p : tensor<16x16xf32> -> tensor<16xf32>
  %wide = tile.broadcast %decay : tensor<16xf32> -> tensor<16x32xf32>
  %decayed = arith.mulf %o, %wide : tensor<16x32xf32>
  %y = scf.if %is_edge -> (tensor<16x32xf32>) {
    %edge = tile.dot %p, %v, %decayed {zero_annihilates} : tensor<16x16xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
    scf.yield %edge : tensor<16x32xf32>
  } else {
    %inner = tile.dot %p, %v, %decayed : tensor<16x16xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
    scf.yield %inner : tensor<16x32xf32>
  }
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x32xf32>, !tile.view<f32, 1>
  return
}

// -----

// A map that somebody else reads is made as any other.
// CHECK-LABEL: func.func @read_twice(
// CHECK: %[[TWICE:.*]] = arith.addf
// CHECK: llvm.store %[[TWICE]]
// CHECK: llvm.intr.fma
// CHECK-NOT: arith.addf
// CHECK: return
func.func @read_twice(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %p = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %twice = arith.addf %p, %p : tensor<16x16xf32>
  %y = tile.dot %p, %v, %twice : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x16xf32>, !tile.view<f32, 1>
  tile.store %twice, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// -----

// Sums are floats: a map of integers is a tile of its own.
// CHECK-LABEL: func.func @integers(
// CHECK: %[[FLOATS:.*]] = arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: llvm.store %[[FLOATS]]
// CHECK: llvm.intr.fma
// CHECK-NOT: arith.sitofp
// CHECK: return
func.func @integers(%x: !tile.view<f32, 1>, %counts: !tile.view<i32, 1>) {
  %yes = arith.constant true
  %p = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %count = tile.load %counts rows(%r) { tile.at [%r] if %yes } : !tile.view<i32, 1> -> tensor<16x16xi32>
  %start = arith.sitofp %count : tensor<16x16xi32> to tensor<16x16xf32>
  %y = tile.dot %p, %v, %start : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// -----

// With one column a row lies as the tile does, and still is not what the sums start from: it is read after it.
// CHECK-LABEL: func.func @one_column(
// CHECK: arith.mulf
// CHECK: llvm.intr.fma
// CHECK: return
func.func @one_column(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %d = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16xf32>
  %p = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x1xf32>
  %o = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x1xf32>
  %wide = tile.broadcast %d : tensor<16xf32> -> tensor<16x1xf32>
  %decayed = arith.mulf %wide, %o : tensor<16x1xf32>
  %y = tile.dot %p, %v, %decayed : tensor<16x16xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x1xf32>, !tile.view<f32, 1>
  return
}
