// RUN: nsa-opt %s --tile-merge-branches | FileCheck %s

// What lies between goes into both arms; what is used afterwards, beside the second branch's own result, is yielded too.
// CHECK-LABEL: func.func @two
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: f32, %[[VIEW:.*]]: !tile.view
// CHECK: %[[R:.*]]:2 = scf.if %[[C]] -> (f32, f32) {
// CHECK-NEXT: %[[NEG:.*]] = arith.negf %[[X]]
// CHECK-NEXT: %[[EXP:.*]] = math.exp2 %[[NEG]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[EXP]], %[[NEG]]
// CHECK-NEXT: scf.yield %[[EXP]], %[[SUM]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[EXP:.*]] = math.exp2 %[[X]]
// CHECK-NEXT: scf.yield %[[EXP]], %[[EXP]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[LAST:.*]] = arith.mulf %[[R]]#0, %[[R]]#1
func.func @two(%c: i1, %x: f32, %view: !tile.view<f32, 1>, %ok: i1) {
  %a = scf.if %c -> (f32) {
    %n = arith.negf %x : f32
    scf.yield %n : f32
  } else {
    scf.yield %x : f32
  }
  %e = math.exp2 %a : f32
  %b = scf.if %c -> (f32) {
    %s = arith.addf %e, %a : f32
    scf.yield %s : f32
  } else {
    scf.yield %e : f32
  }
  %last = arith.mulf %e, %b : f32
  %row = tile.splat %last : tensor<16xf32>
  tile.store %row, %view rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// Three become one; a first branch without an else gets one.
// CHECK-LABEL: func.func @three
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile.report
// CHECK-NEXT: tile.report
// CHECK-NEXT: } else {
// CHECK-NEXT: tile.report
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @three(%c: i1, %code: i32, %list: !tile.view<i32, 1>) {
  scf.if %c {
    tile.report %c, %code, %code to %list : !tile.view<i32, 1>
  }
  scf.if %c {
    tile.report %c, %code, %code to %list : !tile.view<i32, 1>
  }
  scf.if %c {
  } else {
    tile.report %c, %code, %code to %list : !tile.view<i32, 1>
  }
  return
}

// In the body of a loop, with tiles.
// CHECK-LABEL: func.func @in_a_loop
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NOT: scf.if
// CHECK: scf.yield
// CHECK: } else {
// CHECK-NOT: scf.if
// CHECK: return
func.func @in_a_loop(%c: i1, %x: tensor<16xf32>, %n: i32, %view: !tile.view<f32, 1>, %ok: i1) {
  %all = scf.for %i = %n to %n step %n iter_args(%old = %x) -> (tensor<16xf32>) : i32 {
    %a = scf.if %c -> (tensor<16xf32>) {
      %n1 = arith.negf %old : tensor<16xf32>
      scf.yield %n1 : tensor<16xf32>
    } else {
      scf.yield %old : tensor<16xf32>
    }
    %e = math.exp2 %a : tensor<16xf32>
    %b = scf.if %c -> (tensor<16xf32>) {
      %n2 = arith.negf %e : tensor<16xf32>
      scf.yield %n2 : tensor<16xf32>
    } else {
      scf.yield %e : tensor<16xf32>
    }
    scf.yield %b : tensor<16xf32>
  }
  tile.store %all, %view rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// Nothing that loads or writes is copied into arms, and other conditions are other branches.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-5: scf.if
// CHECK: return
func.func @kept(%c: i1, %d: i1, %code: i32, %list: !tile.view<i32, 1>) {
  scf.if %c {
    tile.report %c, %code, %code to %list : !tile.view<i32, 1>
  }
  tile.report %c, %code, %code to %list : !tile.view<i32, 1>
  scf.if %c {
    tile.report %c, %code, %code to %list : !tile.view<i32, 1>
  }
  %other = tile.load_scalar %list[%code] : !tile.view<i32, 1>
  scf.if %c {
    tile.report %c, %other, %code to %list : !tile.view<i32, 1>
  }
  scf.if %d {
    tile.report %d, %code, %code to %list : !tile.view<i32, 1>
  }
  %row = tile.load %list rows(%r) {
    tile.at [%r] if %d
  } : !tile.view<i32, 1> -> tensor<16xi32>
  scf.if %d {
    tile.store %row, %list rows(%r) {
      tile.at [%r] if %d
    } : tensor<16xi32>, !tile.view<i32, 1>
  }
  return
}
