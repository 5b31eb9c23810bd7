// A view of pages takes two slots more, its table and the distance of the table's rows. The table is read for rows that exist,
// and between two views its slots are chosen as the others.
// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse | FileCheck %s

// CHECK-LABEL: func.func @pages(
// CHECK-SAME: %[[SLOTS:[^:]*]]: !llvm.ptr
// CHECK: %[[DATA:.*]] = llvm.load %[[SLOTS]] {{.*}} -> !llvm.ptr
// CHECK: %[[TABLE_AT:.*]] = llvm.getelementptr inbounds %[[SLOTS]][32]
// CHECK-NEXT: %[[TABLE:.*]] = llvm.load %[[TABLE_AT]] {{.*}} -> !llvm.ptr
// CHECK-NEXT: %[[STRIDE_AT:.*]] = llvm.getelementptr inbounds %[[SLOTS]][40]
// CHECK-NEXT: %[[STRIDE:.*]] = llvm.load %[[STRIDE_AT]] {{.*}} -> i64
// CHECK-NEXT: llvm.getelementptr inbounds %[[SLOTS]][48]
// CHECK: llvm.getelementptr inbounds %[[SLOTS]][96]
// CHECK-NEXT: %[[PAST:.*]] = llvm.load %{{.*}} -> i32
// CHECK: arith.select %[[FIRST:[^,]*]], %[[DATA]], %{{.*}} : !llvm.ptr
// CHECK: %[[CHOSEN:.*]] = arith.select %[[FIRST]], %[[TABLE]], %{{.*}} : !llvm.ptr
// CHECK: %[[CHOSEN_STRIDE:.*]] = arith.select %[[FIRST]], %[[STRIDE]], %{{.*}} : i64
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW:.*]], %[[PAST]] : i32
// CHECK-NEXT: %[[PAGE:.*]] = scf.if %[[EXISTS]] -> (i32) {
// CHECK: %[[NUMBER:.*]] = arith.divui %[[ROW]], %c5_i32
// CHECK: arith.muli %{{.*}}, %[[CHOSEN_STRIDE]]
// CHECK: %[[ENTRY:.*]] = llvm.getelementptr inbounds %[[CHOSEN]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i32
// CHECK-NEXT: llvm.load %[[ENTRY]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %c0_i32
// CHECK: %[[IN_PAGE:.*]] = arith.remui %[[ROW]], %c5_i32
// CHECK: arith.extsi %[[PAGE]]
// CHECK: arith.extsi %[[IN_PAGE]]
// CHECK: scf.if %[[EXISTS]] {
func.func @pages(%x: !tile.view<f32, 2, 5>, %y: !tile.view<f32, 2, 5>, %past: i32) {
  %zero = arith.constant 0 : i32
  %first = arith.cmpi eq, %past, %zero : i32
  %view = arith.select %first, %x, %y : !tile.view<f32, 2, 5>
  %t = tile.load %view rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%zero, %r] if %exists
  } : !tile.view<f32, 2, 5> -> tensor<16x16xf32>
  tile.store %t, %view rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%zero, %r] if %exists
  } : tensor<16x16xf32>, !tile.view<f32, 2, 5>
  return
}
