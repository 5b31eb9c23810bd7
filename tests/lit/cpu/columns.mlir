// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse --split-input-file | FileCheck %s

// A value per column is one scalar for all lanes in the loop over columns. It is a vector where it is mapped alone, and its
// index runs along the lanes.
// CHECK-LABEL: func.func @column(
// CHECK: arith.addi %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c5_i64
// CHECK: %[[WIDE:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK: arith.addf %{{.*}}, %[[WIDE]] : vector<16xf32>
func.func @column(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %s = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x5xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<5xf32, #tile.column>
  %number = tile.iota 0 : tensor<5xi32, #tile.column>
  %number_f = arith.sitofp %number : tensor<5xi32, #tile.column> to tensor<5xf32, #tile.column>
  %w = arith.mulf %v, %number_f : tensor<5xf32, #tile.column>
  tile.store %w, %x rows(%r) { tile.at [%r] if %yes } : tensor<5xf32, #tile.column>, !tile.view<f32, 1>
  %wide = tile.broadcast %w : tensor<5xf32, #tile.column> -> tensor<16x5xf32>
  %y = arith.addf %s, %wide : tensor<16x5xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x5xf32>, !tile.view<f32, 1>
  return
}

// -----

// A map that reads one value per column is not applied to the sums of a dot.
// CHECK-LABEL: func.func @scaled(
// CHECK: vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK: arith.mulf
// CHECK: llvm.store
// CHECK: llvm.intr.fma
func.func @scaled(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %o = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %p = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %q = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16x16xf32>
  %v = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<16xf32, #tile.column>
  %wide = tile.broadcast %v : tensor<16xf32, #tile.column> -> tensor<16x16xf32>
  %scaled = arith.mulf %o, %wide : tensor<16x16xf32>
  %y = tile.dot %p, %q, %scaled : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// -----

// Sums along the rows: the panels first, lanes behind the last row count as -0, then the lanes in halves. The last column is
// taken only of panels.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[IS_ROW:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: arith.select %[[IS_ROW]], %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK-COUNT-4: vector.shuffle
// CHECK: %[[SUM:.*]] = vector.extract %{{.*}}[0] : f32 from vector<16xf32>
// CHECK: llvm.store %[[SUM]]
func.func @rows(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %s = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<37x5xf32>
  %last = tile.reduce last %s : tensor<37x5xf32> -> tensor<37xf32>
  %sum = tile.reduce add %s : tensor<37x5xf32> -> tensor<5xf32, #tile.column>
  tile.store %sum, %x rows(%r) { tile.at [%r] if %yes } : tensor<5xf32, #tile.column>, !tile.view<f32, 1>
  return
}

// -----

// A computed left side that is given transposed is transposed into rows; a row of it is a vector of the product. The loop over
// the depth steps by rows of 16 words, 64 bytes, on both sides.
// CHECK-LABEL: func.func @transposed(
// CHECK: vector.shuffle
// CHECK: scf.for %{{.*}} = %{{.*}} to %c32_i64
// CHECK: llvm.intr.fma
// CHECK: llvm.getelementptr inbounds %{{.*}}[64]
func.func @transposed(%x: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %s = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<32x16xf32>
  %k = tile.load %x rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<32x8xf32>
  %p = arith.negf %s : tensor<32x16xf32>
  %zero = arith.constant dense<0.0> : tensor<16x8xf32>
  %y = tile.dot %p, %k, %zero {transpose_a} : tensor<32x16xf32>, tensor<32x8xf32> -> tensor<16x8xf32>
  tile.store %y, %x rows(%r) { tile.at [%r] if %yes } : tensor<16x8xf32>, !tile.view<f32, 1>
  return
}
