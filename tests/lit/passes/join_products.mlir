// RUN: nsa-opt %s --tile-join-products | FileCheck %s

// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[C:[^:]*]]: i1, %[[P:[^:]*]]: tensor<16x32xbf16>, %[[V:[^:]*]]: tensor<32x16xbf16>, %[[ACC:[^:]*]]: tensor<16x16xf32>
// CHECK-NEXT: %[[O:.*]] = tile.dot %[[P]], %[[V]], %[[ACC]] where %[[C]] {zero_annihilates}
// CHECK-NEXT: return %[[O]]
func.func @joined(%c: i1, %p: tensor<16x32xbf16>, %v: tensor<32x16xbf16>, %acc: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %o = scf.if %c -> (tensor<16x16xf32>) {
    %careful = tile.dot %p, %v, %acc {zero_annihilates} : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %careful : tensor<16x16xf32>
  } else {
    %plain = tile.dot %p, %v, %acc : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %plain : tensor<16x16xf32>
  }
  return %o : tensor<16x16xf32>
}

// The condition must be the one under which zeros annihilate.
// CHECK-LABEL: func.func @the_other_way
// CHECK: scf.if
// CHECK-NOT: where
func.func @the_other_way(%c: i1, %p: tensor<16x32xbf16>, %v: tensor<32x16xbf16>, %acc: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %o = scf.if %c -> (tensor<16x16xf32>) {
    %plain = tile.dot %p, %v, %acc : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %plain : tensor<16x16xf32>
  } else {
    %careful = tile.dot %p, %v, %acc {zero_annihilates} : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %careful : tensor<16x16xf32>
  }
  return %o : tensor<16x16xf32>
}

// Other operands, or more than the product in an arm: two products they stay.
// CHECK-LABEL: func.func @different
// CHECK: scf.if
// CHECK: scf.if
// CHECK-NOT: where
func.func @different(%c: i1, %p: tensor<16x32xbf16>, %v: tensor<32x16xbf16>, %w: tensor<32x16xbf16>, %acc: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %o = scf.if %c -> (tensor<16x16xf32>) {
    %careful = tile.dot %p, %v, %acc {zero_annihilates} : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %careful : tensor<16x16xf32>
  } else {
    %plain = tile.dot %p, %w, %acc : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %plain : tensor<16x16xf32>
  }
  %r = scf.if %c -> (tensor<16x16xf32>) {
    %careful = tile.dot %p, %v, %o {zero_annihilates} : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %careful : tensor<16x16xf32>
  } else {
    %plain = tile.dot %p, %v, %o : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    scf.yield %o : tensor<16x16xf32>
  }
  return %r : tensor<16x16xf32>
}
