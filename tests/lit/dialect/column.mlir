// Vectors with one value per column, products with a transposed left side, and conversions are printed as they were read.
// RUN: nsa-opt %s | nsa-opt | FileCheck %s

// CHECK-LABEL: func.func @column
func.func @column(%view: !tile.view<f32, 1>, %s: tensor<64x32xf32>, %ok: i1, %list: !tile.view<i32, 1>) -> tensor<64x32xf32> {
  // CHECK: %[[V:.*]] = tile.load %{{.*}} rows(%{{.*}}) {
  // CHECK: } : !tile.view<f32, 1> -> tensor<32xf32, #tile.column>
  %v = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<32xf32, #tile.column>
  // CHECK: tile.iota 0 : tensor<32xi32, #tile.column>
  %place = tile.iota 0 : tensor<32xi32, #tile.column>
  // CHECK: %[[SUM:.*]] = tile.reduce add %{{.*}} : tensor<64x32xf32> -> tensor<32xf32, #tile.column>
  %sum = tile.reduce add %s : tensor<64x32xf32> -> tensor<32xf32, #tile.column>
  // CHECK: tile.reduce max %{{.*}} : tensor<64x32xf32> -> tensor<32xf32, #tile.column>
  %max = tile.reduce max %s : tensor<64x32xf32> -> tensor<32xf32, #tile.column>
  // CHECK: arith.addf %[[V]], %[[SUM]] : tensor<32xf32, #tile.column>
  %both = arith.addf %v, %sum : tensor<32xf32, #tile.column>
  // CHECK: tile.broadcast %{{.*}} : tensor<32xf32, #tile.column> -> tensor<64x32xf32>
  %wide = tile.broadcast %both : tensor<32xf32, #tile.column> -> tensor<64x32xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}} rows(%{{.*}}, %{{.*}} of %{{.*}} : tensor<32xi32, #tile.column>) {
  // CHECK: } : tensor<32xf32, #tile.column>, !tile.view<f32, 1>
  tile.store %max, %view rows(%r, %p of %place : tensor<32xi32, #tile.column>) {
    tile.at [%p] if %ok
  } : tensor<32xf32, #tile.column>, !tile.view<f32, 1>
  // CHECK: tile.map(%{{.*}} = %{{.*}} : tensor<64x32xf32>, %{{.*}} = %[[V]] : tensor<32xf32, #tile.column>) at (%{{.*}}, %{{.*}}) -> tensor<64x32xf32>
  %mapped = tile.map(%e = %wide : tensor<64x32xf32>, %f = %v : tensor<32xf32, #tile.column>) at (%i, %j) -> tensor<64x32xf32> {
    %x = arith.mulf %e, %f : f32
    tile.yield %x : f32
  }
  return %mapped : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @transposed
func.func @transposed(%a: tensor<32x64xbf16>, %b: tensor<32x16xbf16>, %c: tensor<16x32xbf16>, %acc: tensor<64x16xf32>) -> tensor<64x16xf32> {
  // CHECK: %[[A:.*]] = tile.convert_layout %{{.*}} {tile.layout = #tile.layout<shared>} : tensor<32x64xbf16>
  %read = tile.convert_layout %a {tile.layout = #tile.layout<shared>} : tensor<32x64xbf16>
  // CHECK: tile.dot %[[A]], %{{.*}} {keeps_b, transpose_a, zero_annihilates} : tensor<32x64xbf16>, tensor<32x16xbf16> -> tensor<64x16xf32>
  %s = tile.dot %read, %b, %acc {transpose_a, zero_annihilates, keeps_b} : tensor<32x64xbf16>, tensor<32x16xbf16> -> tensor<64x16xf32>
  // CHECK: tile.dot %[[A]], %{{.*}} {transpose_a, transpose_b} : tensor<32x64xbf16>, tensor<16x32xbf16> -> tensor<64x16xf32>
  %t = tile.dot %read, %c, %s {transpose_a, transpose_b} : tensor<32x64xbf16>, tensor<16x32xbf16> -> tensor<64x16xf32>
  return %t : tensor<64x16xf32>
}
