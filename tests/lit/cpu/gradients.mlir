// The flags of a view of gradients, its last slot, choose how a row is stored: as bf16 that replaces what is there, as f32,
// or as bf16 that is added. The distance of elements follows from the flags.
// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse | FileCheck %s

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[SLOTS:[^:]*]]: !llvm.ptr
// CHECK: %[[FLAGS_AT:.*]] = llvm.getelementptr inbounds %[[SLOTS]][48]
// CHECK-NEXT: %[[FLAGS:.*]] = llvm.load %[[FLAGS_AT]] {{.*}} -> i64
// CHECK-NEXT: %[[BITS:.*]] = arith.andi %[[FLAGS]], %c6_i64
// CHECK-NEXT: %[[IS_OTHER:.*]] = arith.cmpi ne, %[[BITS]], %c0_i64
// CHECK-NEXT: %[[IS_PLAIN:.*]] = arith.xori %[[IS_OTHER]], %true
// CHECK: %[[HOLDS_FLOATS:.*]] = arith.cmpi ne
// CHECK: %[[ADDS:.*]] = arith.cmpi ne
// CHECK: %[[BYTES:.*]] = arith.select %[[HOLDS_FLOATS]], %c4_i64, %c2_i64
// CHECK: arith.muli %{{.*}}, %[[BYTES]]
// CHECK: scf.if %[[IS_PLAIN]] {
// CHECK-NOT: arith.select %[[ADDS]]
// CHECK: } else {
// CHECK-NEXT: scf.if %[[HOLDS_FLOATS]] {
// CHECK-NEXT: %[[NEW:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK-NEXT: %[[HELD:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[HELD]], %[[NEW]] : vector<16xf32>
// CHECK-NEXT: %[[STORED:.*]] = arith.select %[[ADDS]], %[[SUM]], %[[NEW]]
// CHECK-NEXT: llvm.store %[[STORED]]
// CHECK: } else {
// CHECK: llvm.load {{.*}} -> vector<16xi16>
// CHECK: arith.select %[[ADDS]]
// CHECK: llvm.store {{.*}} : vector<16xi16>
func.func @gradients(%x: !tile.view<f32, 1>, %y: !tile.view<!tile.gradient<bf16>, 2>, %past: i32) {
  %zero = arith.constant 0 : i32
  %yes = arith.constant true
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16x16xf32>
  tile.store %t, %y rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%zero, %r] if %exists
  } : tensor<16x16xf32>, !tile.view<!tile.gradient<bf16>, 2>
  return
}
