// RUN: nsa-opt %s --tile-fuse-elementwise | FileCheck %s

// One expression is one map; what a map reads per row stays per row.
// CHECK-LABEL: func.func @softmax_weights
// CHECK-NEXT: %[[P:.*]] = tile.map(%[[S:.*]] = %arg0 : tensor<64x32xf32>, %[[F:.*]] = %arg2 : f32, %[[M:.*]] = %arg1 : tensor<64xf32>) at (%{{.*}}, %{{.*}}) -> tensor<64x32xf32> {
// CHECK-NEXT: %[[A:.*]] = math.fma %[[S]], %[[F]], %[[M]] : f32
// CHECK-NEXT: %[[B:.*]] = math.exp2 %[[A]] : f32
// CHECK-NEXT: tile.yield %[[B]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: return %[[P]]
func.func @softmax_weights(%s: tensor<64x32xf32>, %m: tensor<64xf32>, %scale: f32) -> tensor<64x32xf32> {
  %scale_tile = tile.splat %scale : tensor<64x32xf32>
  %wide = tile.broadcast %m : tensor<64xf32> -> tensor<64x32xf32>
  %shifted = math.fma %s, %scale_tile, %wide : tensor<64x32xf32>
  %p = math.exp2 %shifted : tensor<64x32xf32>
  return %p : tensor<64x32xf32>
}

// The position of a row is computed once per row, the mask per element; a value used twice inside is computed once.
// CHECK-LABEL: func.func @mask
// CHECK-NEXT: %[[POSITION:.*]] = tile.map(%[[G:.*]] = %arg2 : i32) at (%[[ROW:.*]], %{{.*}}) -> tensor<64xi32> {
// CHECK-NEXT: %[[Q:.*]] = arith.divsi %[[ROW]], %[[G]] : i32
// CHECK-NEXT: tile.yield %[[Q]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tile.map(%[[P:.*]] = %[[POSITION]] : tensor<64xi32>, %[[W:.*]] = %arg1 : i32, %[[S:.*]] = %arg0 : tensor<64x32xf32>) at (%{{.*}}, %[[COLUMN:.*]]) -> tensor<64x32xf32> {
// CHECK-NEXT: %[[AGE:.*]] = arith.subi %[[P]], %[[COLUMN]] : i32
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[PAST:.*]] = arith.cmpi sge, %[[AGE]], %[[ZERO]] : i32
// CHECK-NEXT: %[[RECENT:.*]] = arith.cmpi slt, %[[AGE]], %[[W]] : i32
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[PAST]], %[[RECENT]] : i1
// CHECK-NEXT: %[[NONE:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT: %[[X:.*]] = arith.select %[[BOTH]], %[[S]], %[[NONE]] : f32
// CHECK-NEXT: tile.yield %[[X]] : f32
func.func @mask(%s: tensor<64x32xf32>, %window: i32, %group: i32) -> tensor<64x32xf32> {
  %row = tile.iota 0 : tensor<64xi32>
  %group_row = tile.splat %group : tensor<64xi32>
  %position = arith.divsi %row, %group_row : tensor<64xi32>
  %wide = tile.broadcast %position : tensor<64xi32> -> tensor<64x32xi32>
  %column = tile.iota 1 : tensor<64x32xi32>
  %age = arith.subi %wide, %column : tensor<64x32xi32>
  %zero = arith.constant dense<0> : tensor<64x32xi32>
  %past = arith.cmpi sge, %age, %zero : tensor<64x32xi32>
  %window_tile = tile.splat %window : tensor<64x32xi32>
  %recent = arith.cmpi slt, %age, %window_tile : tensor<64x32xi32>
  %allowed = arith.andi %past, %recent : tensor<64x32xi1>
  %none = arith.constant dense<0xFF800000> : tensor<64x32xf32>
  %masked = arith.select %allowed, %s, %none : tensor<64x32xi1>, tensor<64x32xf32>
  return %masked : tensor<64x32xf32>
}

// A value that a reduction reads too ends an expression: it is not computed twice.
// CHECK-LABEL: func.func @two_uses
// CHECK: %[[P:.*]] = tile.map({{.*}}) at {{.*}} -> tensor<64x32xf32> {
// CHECK-NEXT: math.exp2
// CHECK-NEXT: tile.yield
// CHECK: tile.reduce add %[[P]]
// CHECK: tile.map({{.*}} = %[[P]] : tensor<64x32xf32>) at {{.*}} -> tensor<64x32xbf16> {
// CHECK-NEXT: arith.truncf
// CHECK-NOT: math.exp2
func.func @two_uses(%s: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xbf16>) {
  %p = math.exp2 %s : tensor<64x32xf32>
  %sum = tile.reduce add %p : tensor<64x32xf32> -> tensor<64xf32>
  %rounded = tile.cast %p : tensor<64x32xf32> -> tensor<64x32xbf16>
  return %sum, %rounded : tensor<64xf32>, tensor<64x32xbf16>
}

// A value of another block is an input, whatever computes it: it may run less often there.
// CHECK-LABEL: func.func @other_block
// CHECK: %[[Y:.*]] = tile.map
// CHECK: scf.if
// CHECK: tile.map(%{{.*}} = %[[Y]] : tensor<64xf32>)
func.func @other_block(%x: tensor<64xf32>, %c: i1) -> tensor<64xf32> {
  %y = math.exp2 %x : tensor<64xf32>
  %z = scf.if %c -> (tensor<64xf32>) {
    %inner = arith.negf %y : tensor<64xf32>
    scf.yield %inner : tensor<64xf32>
  } else {
    scf.yield %x : tensor<64xf32>
  }
  return %z : tensor<64xf32>
}

// arith knows no conversion between the 16 bit types.
// CHECK-LABEL: func.func @cast
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT: arith.truncf %[[W]] : f32 to f16
func.func @cast(%x: tensor<64xbf16>) -> tensor<64xf16> {
  %y = tile.cast %x : tensor<64xbf16> -> tensor<64xf16>
  return %y : tensor<64xf16>
}

// Indices and broadcasts that no expression reads become maps; a splat is an operation of its own.
// CHECK-LABEL: func.func @free
// CHECK-NEXT: %[[I:.*]] = tile.map() at (%{{.*}}, %[[C:.*]]) -> tensor<64x32xi32> {
// CHECK-NEXT: tile.yield %[[C]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[B:.*]] = tile.map(%[[E:.*]] = %arg0 : tensor<64xf32>) at {{.*}} -> tensor<64x32xf32> {
// CHECK-NEXT: tile.yield %[[E]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = tile.splat %arg1 : tensor<64x32xf32>
// CHECK-NEXT: return %[[I]], %[[B]], %[[S]]
func.func @free(%row: tensor<64xf32>, %x: f32) -> (tensor<64x32xi32>, tensor<64x32xf32>, tensor<64x32xf32>) {
  %column = tile.iota 1 : tensor<64x32xi32>
  %wide = tile.broadcast %row : tensor<64xf32> -> tensor<64x32xf32>
  %splat = tile.splat %x : tensor<64x32xf32>
  return %column, %wide, %splat : tensor<64x32xi32>, tensor<64x32xf32>, tensor<64x32xf32>
}

// f64 exists within an expression.
// CHECK-LABEL: func.func @wide
// CHECK-NEXT: tile.map(%[[P:.*]] = %arg0 : tensor<64xi32>, %[[S:.*]] = %arg1 : f64) at {{.*}} -> tensor<64xf32> {
// CHECK-NEXT: %[[W:.*]] = arith.sitofp %[[P]] : i32 to f64
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[W]], %[[S]] : f64
// CHECK-NEXT: %[[N:.*]] = arith.truncf %[[T]] : f64 to f32
// CHECK-NEXT: tile.yield %[[N]] : f32
func.func @wide(%x: tensor<64xi32>, %step: f64) -> tensor<64xf32> {
  %wide = arith.sitofp %x : tensor<64xi32> to tensor<64xf64>
  %steps = tile.splat %step : tensor<64xf64>
  %turns = arith.mulf %wide, %steps : tensor<64xf64>
  %y = arith.truncf %turns : tensor<64xf64> to tensor<64xf32>
  return %y : tensor<64xf32>
}

// A value per column keeps rank 1. It sinks into the expression of a matrix as a value of the column, and the index along it is
// the column.
// CHECK-LABEL: func.func @columns
// CHECK-NEXT: tile.map(%[[A:.*]] = %arg0 : tensor<32xf32, #tile.column>) at (%{{.*}}, %[[J:.*]]) -> tensor<32xf32, #tile.column> {
// CHECK-NEXT: arith.sitofp %[[J]] : i32 to f32
// CHECK-NEXT: arith.mulf
// CHECK: tile.map(%{{.*}} = %arg1 : tensor<16x32xf32>, %{{.*}} = %{{.*}} : tensor<32xf32, #tile.column>) at (%{{.*}}, %[[COLUMN:.*]]) -> tensor<16x32xf32> {
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.sitofp %[[COLUMN]] : i32 to f32
func.func @columns(%v: tensor<32xf32, #tile.column>, %s: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %index = tile.iota 0 : tensor<32xi32, #tile.column>
  %number = arith.sitofp %index : tensor<32xi32, #tile.column> to tensor<32xf32, #tile.column>
  %scaled = arith.mulf %v, %number : tensor<32xf32, #tile.column>
  %wide = tile.broadcast %scaled : tensor<32xf32, #tile.column> -> tensor<16x32xf32>
  %shifted = arith.subf %s, %wide : tensor<16x32xf32>
  %numbers = tile.broadcast %index : tensor<32xi32, #tile.column> -> tensor<16x32xi32>
  %numbers_f = arith.sitofp %numbers : tensor<16x32xi32> to tensor<16x32xf32>
  %result = arith.addf %shifted, %numbers_f : tensor<16x32xf32>
  return %result : tensor<16x32xf32>
}
