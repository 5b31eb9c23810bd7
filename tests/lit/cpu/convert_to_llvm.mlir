// RUN: nsa-opt %s --tile-convert-to-llvm | FileCheck %s

// CHECK-LABEL: llvm.func @kernel(%arg0: !llvm.ptr {llvm.noalias}, %arg1: i64)
// CHECK: llvm.br ^[[HEAD:.*]](
// CHECK: ^[[HEAD]](
// CHECK: llvm.cond_br
// CHECK: llvm.getelementptr inbounds %arg0
// CHECK: llvm.fadd %{{.*}} : vector<16xf32>
// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.return
func.func @kernel(%p: !llvm.ptr {llvm.noalias}, %n: i64) {
  %zero = arith.constant 0 : i64
  %step = arith.constant 16 : i64
  %one = arith.constant 1.0 : f32
  %ones = vector.broadcast %one : f32 to vector<16xf32>
  scf.for %i = %zero to %n step %step : i64 {
    %at = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %at {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
    %y = arith.addf %x, %ones : vector<16xf32>
    llvm.store %y, %at {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
  }
  return
}

// A loop that is known to run tests at its end only.
// CHECK-LABEL: llvm.func @counted(
// CHECK: llvm.br ^[[BODY:.*]](
// CHECK: ^[[BODY]](%[[I:.*]]: i64, %[[AT:.*]]: !llvm.ptr):
// CHECK: llvm.store
// CHECK: %[[NEXT:.*]] = llvm.add %[[I]]
// CHECK: %[[MORE:.*]] = llvm.icmp "slt" %[[NEXT]]
// CHECK: llvm.cond_br %[[MORE]], ^[[BODY]](%[[NEXT]], %{{.*}}), ^[[AFTER:.*]]
// CHECK: ^[[AFTER]]:
// CHECK: llvm.store
func.func @counted(%p: !llvm.ptr) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %eight = arith.constant 8 : i64
  %end = scf.for %i = %zero to %eight step %one iter_args(%at = %p) -> (!llvm.ptr) : i64 {
    llvm.store %i, %at {alignment = 8 : i64} : i64, !llvm.ptr
    %next = llvm.getelementptr inbounds %at[8] : (!llvm.ptr) -> !llvm.ptr, i8
    scf.yield %next : !llvm.ptr
  }
  llvm.store %zero, %end {alignment = 8 : i64} : i64, !llvm.ptr
  return
}

// One that is known not to run tests first.
// CHECK-LABEL: llvm.func @never(
// CHECK: llvm.br ^[[TEST:[^(]*]](
// CHECK: ^[[TEST]](%[[I:.*]]: i64):
// CHECK-NEXT: %[[MORE:.*]] = llvm.icmp "slt" %[[I]]
// CHECK-NEXT: llvm.cond_br %[[MORE]], ^[[BODY:.*]], ^[[AFTER:.*]]
// CHECK: ^[[BODY]]:
// CHECK-NEXT: llvm.store
// CHECK: ^[[AFTER]]:
// CHECK-NEXT: llvm.return
func.func @never(%p: !llvm.ptr) {
  %one = arith.constant 1 : i64
  %eight = arith.constant 8 : i64
  scf.for %i = %eight to %eight step %one : i64 {
    llvm.store %i, %p {alignment = 8 : i64} : i64, !llvm.ptr
  }
  return
}
