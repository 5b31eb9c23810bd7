// Every operation prints what it parses, in the pretty and in the generic form.
// RUN: nsa-opt %s | nsa-opt | FileCheck %s
// RUN: nsa-opt %s --mlir-print-op-generic | nsa-opt | FileCheck %s

// CHECK-LABEL: func.func @scalars
// CHECK-SAME: %[[LSE:[^:]*]]: !tile.view<f32, 3>, %[[SEQLENS:[^:]*]]: !tile.view<i32, 1>, %[[STATUS:[^:]*]]: !tile.view<i32, 1>
func.func @scalars(%lse: !tile.view<f32, 3>, %seqlens: !tile.view<i32, 1>, %status: !tile.view<i32, 1>) attributes {tile.warps = 4 : i32} {
  // CHECK: %[[X:.*]] = tile.program_id x
  %x = tile.program_id x
  // CHECK: %[[Y:.*]] = tile.program_id y
  %y = tile.program_id y
  // CHECK: tile.program_id z
  %z = tile.program_id z
  // CHECK: %[[PRESENT:.*]] = tile.present %[[LSE]] : !tile.view<f32, 3>
  %present = tile.present %lse : !tile.view<f32, 3>
  // CHECK: tile.load_scalar %[[SEQLENS]][%[[X]]] : !tile.view<i32, 1>
  %begin = tile.load_scalar %seqlens[%x] : !tile.view<i32, 1>
  // CHECK: tile.load_scalar %[[LSE]][%[[X]], %[[X]], %[[Y]]] : !tile.view<f32, 3>
  %value = tile.load_scalar %lse[%x, %x, %y] : !tile.view<f32, 3>
  // CHECK: tile.load_scalar %[[SEQLENS]][%[[Y]]] if %[[PRESENT]] : !tile.view<i32, 1>
  %end = tile.load_scalar %seqlens[%y] if %present : !tile.view<i32, 1>
  // CHECK: tile.report %[[PRESENT]], %[[X]], %[[Y]] to %[[STATUS]] : !tile.view<i32, 1>
  tile.report %present, %x, %y to %status : !tile.view<i32, 1>
  return
}

// CHECK-LABEL: func.func @rows
func.func @rows(%q: !tile.view<bf16, 3>, %lse: !tile.view<f32, 3>, %first: i32, %past: i32) {
  // CHECK: %[[TILE:.*]] = tile.load %{{.*}} rows(%[[R:.*]]) {
  // CHECK-NEXT: %[[TIME:.*]] = arith.addi %{{.*}}, %[[R]] : i32
  // CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[TIME]]
  // CHECK-NEXT: tile.at [%{{.*}}, %[[TIME]], %{{.*}}] if %[[EXISTS]]
  // CHECK-NEXT: } columns(72) {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 3> -> tensor<64x80xbf16>
  %tile = tile.load %q rows(%r) {
    %time = arith.addi %first, %r : i32
    %exists = arith.cmpi slt, %time, %past : i32
    tile.at [%first, %time, %past] if %exists
  } columns(72) {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 3> -> tensor<64x80xbf16>
  // CHECK: tile.load %{{.*}} rows(%{{.*}}) {
  // CHECK: } : !tile.view<f32, 3> -> tensor<64xf32>
  %row = tile.load %lse rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%first, %r, %past] if %exists
  } : !tile.view<f32, 3> -> tensor<64xf32>
  // CHECK: tile.store %[[TILE]], %{{.*}} rows(%{{.*}}) {
  // CHECK: } columns(72) : tensor<64x80xbf16>, !tile.view<bf16, 3>
  tile.store %tile, %q rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%first, %r, %past] if %exists
  } columns(72) : tensor<64x80xbf16>, !tile.view<bf16, 3>
  // CHECK: } : tensor<64xf32>, !tile.view<f32, 3>
  tile.store %row, %lse rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%first, %r, %past] if %exists
  } : tensor<64xf32>, !tile.view<f32, 3>
  return
}

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[WIDE:[^:]*]]: tensor<64x32xf32>, %[[GRADIENT:[^:]*]]: !tile.view<!tile.gradient<bf16>, 2>
func.func @gradients(%wide: tensor<64x32xf32>, %gradient: !tile.view<!tile.gradient<bf16>, 2>, %first: i32, %yes: i1) {
  // CHECK: tile.store %[[WIDE]], %[[GRADIENT]] rows(%{{.*}}) {
  // CHECK: } : tensor<64x32xf32>, !tile.view<!tile.gradient<bf16>, 2>
  tile.store %wide, %gradient rows(%r) {
    tile.at [%first, %r] if %yes
  } : tensor<64x32xf32>, !tile.view<!tile.gradient<bf16>, 2>
  return
}

// CHECK-LABEL: func.func @places(
// CHECK-SAME: %[[X:[^:]*]]: tensor<64xf32>, %[[PLACES:[^:]*]]: tensor<64xi32>, %[[VIEW:[^:]*]]: !tile.view<f32, 2>
func.func @places(%x: tensor<64xf32>, %places: tensor<64xi32>, %view: !tile.view<f32, 2>, %past: i32) {
  // CHECK: tile.store %[[X]], %[[VIEW]] rows(%[[R:.*]], %[[PLACE:.*]] of %[[PLACES]] : tensor<64xi32>) {
  // CHECK: tile.at [%[[R]], %[[PLACE]]] if
  // CHECK: } : tensor<64xf32>, !tile.view<f32, 2>
  tile.store %x, %view rows(%r, %place of %places : tensor<64xi32>) {
    %exists = arith.cmpi slt, %place, %past : i32
    tile.at [%r, %place] if %exists
  } : tensor<64xf32>, !tile.view<f32, 2>
  return
}

// Pages of a number of rows; none are as good as not said.
// CHECK-LABEL: func.func @pages(
// CHECK-SAME: %[[K:[^:]*]]: !tile.view<bf16, 3, 64>, %[[V:[^:]*]]: !tile.view<bf16, 3>, %[[LIST:[^:]*]]: !tile.view<i32, 2, 1>
func.func @pages(%k: !tile.view<bf16, 3, 64>, %v: !tile.view<bf16, 3, 0>, %list: !tile.view<i32, 2, 1>, %n: i32, %first: i1) {
  // CHECK: tile.load_scalar %[[LIST]][%{{.*}}, %{{.*}}] : !tile.view<i32, 2, 1>
  %head = tile.load_scalar %list[%n, %n] : !tile.view<i32, 2, 1>
  // CHECK: %[[VIEW:.*]] = arith.select %{{.*}}, %[[K]], %[[K]] : !tile.view<bf16, 3, 64>
  %view = arith.select %first, %k, %k : !tile.view<bf16, 3, 64>
  // CHECK: tile.load %[[VIEW]] rows
  // CHECK: } : !tile.view<bf16, 3, 64> -> tensor<64x16xbf16>
  %tile = tile.load %view rows(%r) {
    tile.at [%n, %r, %head] if %first
  } : !tile.view<bf16, 3, 64> -> tensor<64x16xbf16>
  // CHECK: } : tensor<64x16xbf16>, !tile.view<bf16, 3>
  tile.store %tile, %v rows(%r) {
    tile.at [%n, %r, %head] if %first
  } : tensor<64x16xbf16>, !tile.view<bf16, 3>
  return
}

// CHECK-LABEL: func.func @chunks
// CHECK-SAME: %[[X:[^:]*]]: !tile.view<bf16, 1>, %[[Y:[^:]*]]: !tile.view<bf16, 1>, %[[N:[^:]*]]: i32, %[[COLUMNS:[^:]*]]: i32, %[[FIRST:[^:]*]]: i1
func.func @chunks(%x: !tile.view<bf16, 1>, %y: !tile.view<bf16, 1>, %n: i32, %columns: i32, %first: i1) {
  // CHECK: %[[VIEW:.*]] = arith.select %[[FIRST]], %[[X]], %[[Y]] : !tile.view<bf16, 1>
  %view = arith.select %first, %x, %y : !tile.view<bf16, 1>
  // CHECK: %[[TILE:.*]] = tile.load %[[VIEW]] rows(%{{.*}}) {
  // CHECK: } chunk(%[[N]] of %[[COLUMNS]]) : !tile.view<bf16, 1> -> tensor<64x16xbf16>
  %tile = tile.load %view rows(%r) {
    tile.at [%r] if %first
  } chunk(%n of %columns) : !tile.view<bf16, 1> -> tensor<64x16xbf16>
  // CHECK: tile.store %[[TILE]], %[[VIEW]] rows(%{{.*}}) {
  // CHECK: } chunk(%[[N]] of %[[COLUMNS]]) : tensor<64x16xbf16>, !tile.view<bf16, 1>
  tile.store %tile, %view rows(%r) {
    tile.at [%r] if %first
  } chunk(%n of %columns) : tensor<64x16xbf16>, !tile.view<bf16, 1>
  return
}

// CHECK-LABEL: func.func @tiles
func.func @tiles(%q: tensor<64x32xbf16>, %k: tensor<16x32xbf16>, %v: tensor<16x48xbf16>, %acc: tensor<64x48xf32>, %zero: f32) -> tensor<64x48xf32> {
  // CHECK: tile.iota 1 : tensor<64x16xi32>
  %column = tile.iota 1 : tensor<64x16xi32>
  // CHECK: %[[ZEROS:.*]] = tile.splat %{{.*}} : tensor<64x16xf32>
  %zeros = tile.splat %zero : tensor<64x16xf32>
  // CHECK: %[[S:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[ZEROS]] {transpose_b} : tensor<64x32xbf16>, tensor<16x32xbf16> -> tensor<64x16xf32>
  %s = tile.dot %q, %k, %zeros {transpose_b} : tensor<64x32xbf16>, tensor<16x32xbf16> -> tensor<64x16xf32>
  // CHECK: %[[M:.*]] = tile.reduce max %[[S]] : tensor<64x16xf32> -> tensor<64xf32>
  %m = tile.reduce max %s : tensor<64x16xf32> -> tensor<64xf32>
  // CHECK: tile.reduce add %[[S]]
  %l = tile.reduce add %s : tensor<64x16xf32> -> tensor<64xf32>
  // CHECK: tile.broadcast %[[M]] : tensor<64xf32> -> tensor<64x16xf32>
  %wide = tile.broadcast %m : tensor<64xf32> -> tensor<64x16xf32>
  // CHECK: %[[P:.*]] = tile.map(%[[E:.*]] = %[[S]] : tensor<64x16xf32>, %[[N:.*]] = %[[M]] : tensor<64xf32>, %[[F:.*]] = %{{.*}} : f32) at (%[[I:.*]], %[[J:.*]]) -> tensor<64x16xf32> {
  // CHECK-NEXT: %[[D:.*]] = arith.subf %[[E]], %[[N]] : f32
  // CHECK-NEXT: %[[C:.*]] = arith.cmpi sle, %[[J]], %[[I]] : i32
  // CHECK-NEXT: %[[X:.*]] = arith.select %[[C]], %[[D]], %[[F]] : f32
  // CHECK-NEXT: tile.yield %[[X]] : f32
  %p = tile.map(%e = %s : tensor<64x16xf32>, %n = %m : tensor<64xf32>, %f = %zero : f32) at (%i, %j) -> tensor<64x16xf32> {
    %d = arith.subf %e, %n : f32
    %c = arith.cmpi sle, %j, %i : i32
    %x = arith.select %c, %d, %f : f32
    tile.yield %x : f32
  }
  // CHECK: %[[ROUNDED:.*]] = tile.cast %[[P]] : tensor<64x16xf32> -> tensor<64x16xbf16>
  %rounded = tile.cast %p : tensor<64x16xf32> -> tensor<64x16xbf16>
  // CHECK: tile.dot %[[ROUNDED]], %{{.*}}, %{{.*}} {zero_annihilates} : tensor<64x16xbf16>, tensor<16x48xbf16> -> tensor<64x48xf32>
  %o = tile.dot %rounded, %v, %acc {zero_annihilates} : tensor<64x16xbf16>, tensor<16x48xbf16> -> tensor<64x48xf32>
  return %o : tensor<64x48xf32>
}
