// RUN: nsa-opt %s --tile-insert-copies --tile-expand-stages | FileCheck %s

// Rows that depend on the induction variable and on values from outside can be told ahead.
// CHECK-LABEL: func.func @ahead
// CHECK-NEXT: %[[RING:.*]] = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 3>
// CHECK-NEXT: %[[FETCH:.*]] = tile.fetch %arg1 to %arg2 step %arg3 stages(3) : i32 (%[[AHEAD:.*]], %[[FILLED:.*]]) {
// CHECK-NEXT: tile.copy %arg0 to %[[RING]][%[[FILLED]]] rows(%[[ROW:.*]]) {
// CHECK-NEXT: arith.addi %[[AHEAD]], %[[ROW]] : i32
// CHECK: } : !tile.view<bf16, 1>, !tile.buffer<tensor<32x64xbf16>, 3>
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[KEY:.*]] = %arg1 to %arg2 step %arg3
// CHECK-NEXT: %[[STAGE:.*]] = tile.fetch_ahead %[[FETCH]] at %[[KEY]] : i32
// CHECK-NEXT: tile.read %[[RING]][%[[STAGE]]] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x64xbf16>, 3>
// CHECK-NEXT: } {tile.stages = 3 : i32}
func.func @ahead(%view: !tile.view<bf16, 1>, %first: i32, %past: i32, %step: i32) {
  scf.for %key = %first to %past step %step : i32 {
    %k = tile.load %view rows(%r) {
      %time = arith.addi %key, %r : i32
      %exists = arith.cmpi slt, %time, %past : i32
      tile.at [%time] if %exists
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  } {tile.stages = 3 : i32}
  return
}

// So are loads of left sides, which go on to registers, and chunks of rows whose number is known ahead.
// CHECK-LABEL: func.func @operand
// CHECK: tile.fetch %{{.*}} stages(2) : i32 (%[[AHEAD:.*]], %{{.*}}) {
// CHECK: } chunk(%arg1 of %arg2) : !tile.view<bf16, 1>, !tile.buffer<tensor<32x64xbf16>, 2>
// CHECK: } chunk(%[[AHEAD]] of %arg2) : !tile.view<bf16, 1>, !tile.buffer<tensor<32x64xbf16>, 2>
// CHECK: tile.fetch_ahead
// CHECK-NEXT: tile.read %{{.*}} {tile.layout = #tile.layout<operand_a>}
// CHECK-NEXT: tile.read %{{.*}} {tile.layout = #tile.layout<shared>}
func.func @operand(%view: !tile.view<bf16, 1>, %chunk: i32, %columns: i32, %n: i32, %ok: i1) {
  scf.for %key = %n to %columns step %n : i32 {
    %a = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } chunk(%chunk of %columns) {tile.layout = #tile.layout<operand_a>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %b = tile.load %view rows(%r) {
      tile.at [%r] if %ok
    } chunk(%key of %columns) {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  } {tile.stages = 2 : i32}
  return
}

// One stage is no ring, and neither is a loop that the template says nothing about.
// CHECK-LABEL: func.func @one_stage
// CHECK-NOT: tile.fetch
// CHECK-LABEL: func.func @scalars
func.func @one_stage(%view: !tile.view<bf16, 1>, %n: i32, %ok: i1) {
  scf.for %key = %n to %n step %n : i32 {
    %k = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  } {tile.stages = 1 : i32}
  scf.for %key = %n to %n step %n : i32 {
    %k = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  }
  return
}

// Rows and chunks may be told by scalars of the body: what it computes from the induction variable, and elements of lists.
// Scalars move with the copies. %block has three uses and the body needs it too, so it is computed in both places and named.
// CHECK: tile.fetch %{{.*}} stages(2) : i32 (%[[AHEAD:.*]], %{{.*}}) {
// CHECK-NEXT: %[[SLOT:.*]] = arith.divsi %[[AHEAD]], %arg3 : i32
// CHECK-NEXT: %[[BLOCK:.*]] = tile.load_scalar %arg1[%[[SLOT]]] {tile.named}
// CHECK-NEXT: %[[FIRST:.*]] = arith.muli %[[BLOCK]], %arg3 : i32
// CHECK-NEXT: tile.copy
// CHECK-NEXT: arith.addi %[[FIRST]]
// CHECK: tile.copy
// CHECK: } chunk(%[[BLOCK]] of %arg3)
// CHECK: scf.for
// CHECK-NEXT: tile.fetch_ahead
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.read
// CHECK-NEXT: arith.divsi
// CHECK-NEXT: tile.load_scalar {{.*}} {tile.named}
// CHECK-NEXT: tile.splat
// CHECK-LABEL: func.func @iteration_data
func.func @scalars(%view: !tile.view<bf16, 1>, %list: !tile.view<i32, 1>, %out: !tile.view<i32, 1>, %n: i32, %ok: i1) {
  scf.for %key = %n to %n step %n : i32 {
    %slot = arith.divsi %key, %n : i32
    %block = tile.load_scalar %list[%slot] : !tile.view<i32, 1>
    %first = arith.muli %block, %n : i32
    %a = tile.load %view rows(%r) {
      %row = arith.addi %first, %r : i32
      tile.at [%row] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %b = tile.load %view rows(%r) {
      %row = tile.load_scalar %list[%r] : !tile.view<i32, 1>
      tile.at [%row] if %ok
    } chunk(%block of %n) {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %row = tile.splat %block : tensor<32xi32>
    tile.store %row, %out rows(%r) {
      tile.at [%r] if %ok
    } : tensor<32xi32>, !tile.view<i32, 1>
  } {tile.stages = 2 : i32}
  return
}

// Rows known only inside the iteration, through a loop-carried value or through memory, are loaded when they are needed; so are
// loads of some iterations only, loads that do not go to shared memory, loads of what the loop writes or that it tells,
// and chunks that the iteration chooses.
// CHECK-NOT: tile.fetch
func.func @iteration_data(%view: !tile.view<bf16, 1>, %other: !tile.view<bf16, 1>, %list: !tile.view<i32, 1>, %n: i32, %ok: i1) {
  %last = scf.for %key = %n to %n step %n iter_args(%carried = %n) -> (i32) : i32 {
    %a = tile.load %view rows(%r) {
      tile.at [%carried] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %block = tile.load_scalar %list[%carried] : !tile.view<i32, 1>
    %b = tile.load %view rows(%r) {
      tile.at [%block] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    scf.if %ok {
      %c = tile.load %view rows(%r) {
        tile.at [%key] if %ok
      } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    }
    %d = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<accumulator>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %f = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } chunk(%block of %n) {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %row = scf.if %ok -> (i32) {
      scf.yield %key : i32
    } else {
      scf.yield %n : i32
    }
    %g = tile.load %view rows(%r) {
      tile.at [%row] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    scf.yield %block : i32
  } {tile.stages = 2 : i32}
  scf.for %key = %n to %n step %n : i32 {
    %block = tile.load_scalar %list[%key] : !tile.view<i32, 1>
    %h = tile.load %view rows(%r) {
      tile.at [%block] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %i = tile.load %view rows(%r) {
      %row = tile.load_scalar %list[%r] : !tile.view<i32, 1>
      tile.at [%row] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %row = tile.splat %block : tensor<32xi32>
    tile.store %row, %list rows(%r) {
      tile.at [%r] if %ok
    } : tensor<32xi32>, !tile.view<i32, 1>
  } {tile.stages = 2 : i32}
  %same = arith.select %ok, %view, %view : !tile.view<bf16, 1>
  %chosen = arith.select %ok, %other, %same : !tile.view<bf16, 1>
  scf.for %key = %n to %n step %n : i32 {
    %e = tile.load %chosen rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    tile.store %e, %view rows(%r) {
      tile.at [%key] if %ok
    } : tensor<32x64xbf16>, !tile.view<bf16, 1>
  } {tile.stages = 2 : i32}
  return
}
