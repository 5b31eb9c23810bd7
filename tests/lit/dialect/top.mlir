// Operations on best columns, and those that selection needs beside them, print what they parse.
// RUN: nsa-opt %s | nsa-opt | FileCheck %s
// RUN: nsa-opt %s --mlir-print-op-generic | nsa-opt | FileCheck %s

// CHECK-LABEL: func.func @top
// CHECK-SAME: %[[FIRST:[^:]*]]: i32, %[[SCORES:[^:]*]]: tensor<64x32xf32>, %[[BEFORE:[^:]*]]: tensor<64xi32>
func.func @top(%first: i32, %scores: tensor<64x32xf32>, %before: tensor<64xi32>) {
  // CHECK: %[[BEST:.*]] = tile.top_create {tile.shared_offset = 128 : i64} : !tile.top<64, 16>
  %best = tile.top_create {tile.shared_offset = 128 : i64} : !tile.top<64, 16>
  // CHECK: tile.top_insert %[[SCORES]] at %[[FIRST]] into %[[BEST]] : tensor<64x32xf32>, !tile.top<64, 16>
  tile.top_insert %scores at %first into %best : tensor<64x32xf32>, !tile.top<64, 16>
  // CHECK: tile.top_next %[[BEST]] after %[[BEFORE]] : !tile.top<64, 16> -> tensor<64xi32>
  %next = tile.top_next %best after %before : !tile.top<64, 16> -> tensor<64xi32>
  return
}

// CHECK-LABEL: func.func @columns
func.func @columns(%x: tensor<64x32xf32>, %first: tensor<64xf32>) {
  // CHECK: tile.shift %{{.*}}, %{{.*}} : tensor<64xf32> -> tensor<64x32xf32>
  %moved = tile.shift %x, %first : tensor<64xf32> -> tensor<64x32xf32>
  // CHECK: tile.reduce last %{{.*}} : tensor<64x32xf32> -> tensor<64xf32>
  %last = tile.reduce last %x : tensor<64x32xf32> -> tensor<64xf32>
  return
}

// CHECK-LABEL: func.func @part
func.func @part(%a: tensor<64x32xbf16>, %b: tensor<80x32xbf16>, %c: tensor<80x48xbf16>, %row: i32, %edge: i1) {
  %zero = arith.constant 0.0 : f32
  %zeros = tile.splat %zero : tensor<64x16xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} from %[[ROW:.*]] {transpose_b} : tensor<64x32xbf16>, tensor<80x32xbf16> -> tensor<64x16xf32>
  %s = tile.dot %a, %b, %zeros from %row {transpose_b} : tensor<64x32xbf16>, tensor<80x32xbf16> -> tensor<64x16xf32>
  %wide = tile.splat %zero : tensor<64x48xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} from %[[ROW]] where %{{.*}} {zero_annihilates} : tensor<64x32xbf16>, tensor<80x48xbf16> -> tensor<64x48xf32>
  %o = tile.dot %a, %c, %wide from %row where %edge {zero_annihilates} : tensor<64x32xbf16>, tensor<80x48xbf16> -> tensor<64x48xf32>
  return
}
