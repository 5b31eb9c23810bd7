// RUN: nsa-opt %s --tile-insert-copies --split-input-file | FileCheck %s

// Loads through shared memory become a copy and a read. Buffers stand at the start of the function, in the order of the loads.
// CHECK-LABEL: func.func @copies
// CHECK-NEXT: %[[Q:.*]] = tile.buffer : !tile.buffer<tensor<16x64xbf16>>
// CHECK-NEXT: %[[K:.*]] = tile.buffer : !tile.buffer<tensor<32x64xbf16>>
// CHECK-NEXT: arith.constant
// CHECK-NEXT: tile.copy %arg0 to %[[Q]] rows(%[[ROW:.*]]) {
// CHECK-NEXT: tile.at [%[[ROW]]] if %arg2
// CHECK-NEXT: } columns(60) : !tile.view<bf16, 1>, !tile.buffer<tensor<16x64xbf16>>
// CHECK-NEXT: %[[QT:.*]] = tile.read %[[Q]] {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<16x64xbf16>>
// CHECK: scf.for %[[KEY:.*]] =
// CHECK-NEXT: tile.copy %arg0 to %[[K]] rows(%{{.*}}) {
// CHECK-NEXT: tile.at [%[[KEY]]] if %arg2
// CHECK-NEXT: } chunk(%[[KEY]] of %arg1) : !tile.view<bf16, 1>, !tile.buffer<tensor<32x64xbf16>>
// CHECK-NEXT: %[[KT:.*]] = tile.read %[[K]] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x64xbf16>>
// CHECK-NEXT: tile.dot %[[QT]], %[[KT]]
func.func @copies(%view: !tile.view<bf16, 1>, %n: i32, %ok: i1) {
  %zero = arith.constant 0.0 : f32
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } columns(60) {tile.layout = #tile.layout<operand_a>} : !tile.view<bf16, 1> -> tensor<16x64xbf16>
  %zeros = tile.splat %zero : tensor<16x32xf32>
  scf.for %key = %n to %n step %n : i32 {
    %k = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } chunk(%key of %n) {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %s = tile.dot %q, %k, %zeros {transpose_b} : tensor<16x64xbf16>, tensor<32x64xbf16> -> tensor<16x32xf32>
  }
  return
}

// -----

// Loads into registers stay.
// CHECK-LABEL: func.func @registers
// CHECK-NOT: tile.buffer
// CHECK: tile.load
// CHECK: tile.load
func.func @registers(%view: !tile.view<bf16, 1>, %ok: i1) {
  %a = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<row>} : !tile.view<bf16, 1> -> tensor<16xbf16>
  %b = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<accumulator>} : !tile.view<bf16, 1> -> tensor<16x64xbf16>
  return
}

// -----

// A computed tile is written and read. Rows that several warps hold are reduced in two steps; the buffer has a row for each
// warp, and at least eight.
// CHECK-LABEL: func.func @computed
// CHECK-NEXT: %[[TILE:.*]] = tile.buffer : !tile.buffer<tensor<32x16xf32>>
// CHECK-NEXT: %[[PARTIALS:.*]] = tile.buffer : !tile.buffer<tensor<8x16xf32>>
// CHECK-NEXT: tile.write %arg0 to %[[TILE]] : !tile.buffer<tensor<32x16xf32>>
// CHECK-NEXT: tile.read %[[TILE]] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x16xf32>>
// CHECK-NEXT: tile.write_partials add %arg0 to %[[PARTIALS]] : tensor<32x16xf32>, !tile.buffer<tensor<8x16xf32>>
// CHECK-NEXT: tile.read_partials add %[[PARTIALS]] {tile.layout = #tile.layout<column>} : !tile.buffer<tensor<8x16xf32>> -> tensor<16xf32, #tile.column>
// CHECK-NEXT: tile.reduce add %arg0
func.func @computed(%x: tensor<32x16xf32>) attributes {tile.warps = 2 : i32} {
  %y = tile.convert_layout %x {tile.layout = #tile.layout<shared>} : tensor<32x16xf32>
  %sum = tile.reduce add %x {tile.layout = #tile.layout<column>} : tensor<32x16xf32> -> tensor<16xf32, #tile.column>
  %rows = tile.reduce add %x {tile.layout = #tile.layout<row>} : tensor<32x16xf32> -> tensor<32xf32>
  return
}

// -----

// One warp reduces its rows in registers.
// CHECK-LABEL: func.func @one_warp
// CHECK-NEXT: tile.reduce max
func.func @one_warp(%x: tensor<32x16xf32>) attributes {tile.warps = 1 : i32} {
  %max = tile.reduce max %x {tile.layout = #tile.layout<column>} : tensor<32x16xf32> -> tensor<16xf32, #tile.column>
  return
}

// -----

// Several warps hold a row of a striped tile. The buffer has an element for each row and warp, whole rows of 16 bytes, and at
// least eight rows. Each thread has all rows of its columns.
// CHECK-LABEL: func.func @striped
// CHECK-NEXT: %[[PARTIALS:.*]] = tile.buffer : !tile.buffer<tensor<8x8xf32>>
// CHECK-NEXT: tile.splat
// CHECK-NEXT: tile.write_partials max %[[X:.*]] to %[[PARTIALS]] : tensor<2x64xf32>, !tile.buffer<tensor<8x8xf32>>
// CHECK-NEXT: tile.read_partials max %[[PARTIALS]] {tile.layout = #tile.layout<uniform>} : !tile.buffer<tensor<8x8xf32>> -> tensor<2xf32>
// CHECK-NEXT: tile.reduce add %[[X]]
func.func @striped(%f: f32) attributes {tile.warps = 6 : i32} {
  %x = tile.splat %f {tile.layout = #tile.layout<striped>} : tensor<2x64xf32>
  %max = tile.reduce max %x {tile.layout = #tile.layout<uniform>} : tensor<2x64xf32> -> tensor<2xf32>
  %sum = tile.reduce add %x {tile.layout = #tile.layout<striped>} : tensor<2x64xf32> -> tensor<64xf32, #tile.column>
  return
}
