// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse | FileCheck %s

// Behind the tiles: 3 panels of 5 slots, each a vector of ranks and one of columns, 1920 bytes; then the staging area.
// A column that no row wants costs a comparison with the worst slot; others go down the slots.
// CHECK-LABEL: func.func @top(
// CHECK-SAME: %[[SCRATCH:[^:]*]]: !llvm.ptr {llvm.noalias}) attributes {tile.scratch_bytes = 10112 : i64}
// CHECK-DAG: %[[ABSENT:.*]] = arith.constant dense<-2147483648> : vector<16xi32>
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<-1> : vector<16xi32>
// CHECK-DAG: %[[BEST:.*]] = llvm.getelementptr inbounds %[[SCRATCH]][6144]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c15_i64
// CHECK: llvm.store %[[ABSENT]]
// CHECK: llvm.store %[[NONE]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c3_i64{{.*}} iter_args(%[[PANEL:[^ ]*]] = %[[BEST]],
// CHECK: scf.for %{{.*}} = %{{.*}} to %c32_i64
// CHECK: llvm.getelementptr inbounds %[[PANEL]][512]
// CHECK: %[[ENTERS:.*]] = arith.ori
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[ENTERS]] : vector<16xi1> to i16
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[BITS]]
// CHECK: scf.if %[[ANY]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c5_i64{{.*}} iter_args(%{{.*}} = %[[PANEL]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c5_i64
// CHECK: arith.minsi
func.func @top(%x: !tile.view<f32, 1>, %out: !tile.view<i32, 1>, %first: i32) {
  %yes = arith.constant true
  %best = tile.top_create : !tile.top<33, 5>
  %s = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<33x32xf32>
  tile.top_insert %s at %first into %best : tensor<33x32xf32>, !tile.top<33, 5>
  %before = tile.splat %first : tensor<33xi32>
  %next = tile.top_next %best after %before : !tile.top<33, 5> -> tensor<33xi32>
  tile.store %next, %out rows(%r) {
    tile.at [%r] if %yes
  } : tensor<33xi32>, !tile.view<i32, 1>
  return
}
