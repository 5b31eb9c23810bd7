// RUN: nsa-opt %s --tile-fold-config | FileCheck %s

// The chosen arm remains, also of a branch that a folded value decides.
// CHECK-LABEL: func.func @rendered_branch
// CHECK-NOT: scf.if
// CHECK: tile.report %{{.*}}, %arg1, %arg1
func.func @rendered_branch(%bad: i1, %oldest: i32, %status: !tile.view<i32, 1>) {
  %windowed = arith.constant 1 : i1
  %zero = arith.constant 0 : i32
  %packed = arith.constant 0 : i1
  %either = arith.ori %windowed, %packed : i1
  %first = scf.if %either -> (i32) {
    %chosen = scf.if %packed -> (i32) {
      scf.yield %zero : i32
    } else {
      scf.yield %oldest : i32
    }
    scf.yield %chosen : i32
  } else {
    scf.yield %zero : i32
  }
  tile.report %bad, %first, %first to %status : !tile.view<i32, 1>
  return
}

// A cast to the same type is what a template writes whose type is a value.
// CHECK-LABEL: func.func @same_type
// CHECK-NEXT: return %arg0
func.func @same_type(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %y = tile.cast %x : tensor<16x16xf32> -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// What the device decides stays, and so does what only another config would drop.
// CHECK-LABEL: func.func @device_branch
// CHECK: scf.if %{{.*}} {
// CHECK: tile.store
// CHECK-LABEL: func.func @other_type
// CHECK: tile.cast %{{.*}} : tensor<16x16xf32> -> tensor<16x16xf16>
func.func @device_branch(%lse: !tile.view<f32, 1>, %row: tensor<16xf32>, %ok: i1) {
  %wanted = tile.present %lse : !tile.view<f32, 1>
  scf.if %wanted {
    tile.store %row, %lse rows(%r) {
      tile.at [%r] if %ok
    } : tensor<16xf32>, !tile.view<f32, 1>
  }
  return
}
func.func @other_type(%x: tensor<16x16xf32>) -> tensor<16x16xf16> {
  %y = tile.cast %x : tensor<16x16xf32> -> tensor<16x16xf16>
  return %y : tensor<16x16xf16>
}

// An argument that only the dropped arm uses disappears. An argument that the chosen arm uses stays, and so does an
// unused argument without the attribute. No argument keeps the attribute.
// CHECK-LABEL: func.func @used_arguments
// CHECK-SAME: (%arg0: i1, %arg1: i32, %arg2: !tile.view<i32, 1>)
// CHECK: tile.report %{{.*}}, %{{.*}}, %{{.*}} to %arg2
func.func @used_arguments(%bad: i1, %unused: i32, %dropped: i32 {tile.if_used},
                          %status: !tile.view<i32, 1> {tile.if_used}) {
  %is_dropped = arith.constant 0 : i1
  %zero = arith.constant 0 : i32
  %value = scf.if %is_dropped -> (i32) {
    scf.yield %dropped : i32
  } else {
    scf.yield %zero : i32
  }
  tile.report %bad, %value, %value to %status : !tile.view<i32, 1>
  return
}
