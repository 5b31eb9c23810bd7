// RUN: nsa-opt %s --tile-keep-operands --split-input-file | FileCheck %s

// A right side that is copied anew in each iteration, and that nothing reads after the product, may be changed. So may one
// of the arms of a branch.
// CHECK-LABEL: func.func @may_change
// CHECK-NOT: keeps_b
// CHECK: return
func.func @may_change(%x: !tile.view<bf16, 1>, %a: tensor<16x16xbf16>, %acc: tensor<16x16xf32>, %n: i32, %ok: i1) {
  %buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  scf.for %i = %n to %n step %n : i32 {
    tile.copy %x to %buffer rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
    %b = tile.read %buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %c = tile.read %ring[%i] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %scores = tile.dot %a, %b, %acc {transpose_b} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    %s = tile.dot %a, %b, %scores {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    %t = scf.if %ok -> (tensor<16x16xf32>) {
      %edge = tile.dot %a, %c, %s {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
      scf.yield %edge : tensor<16x16xf32>
    } else {
      %inner = tile.dot %a, %c, %s : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
      scf.yield %inner : tensor<16x16xf32>
    }
  }
  return
}

// -----

// A tile that a later operation reads, one that is the left side too, one that the next iteration reads again, and one of
// unknown origin are kept. A product in which zero does not annihilate changes nothing.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-5: tile.dot {{.*}} {keeps_b, zero_annihilates}
// CHECK: tile.dot {{.*}} %{{.*}} : tensor<16x16xbf16>
// CHECK-NOT: keeps_b
func.func @kept(%x: !tile.view<bf16, 1>, %a: tensor<16x16xbf16>, %acc: tensor<16x16xf32>, %n: i32, %ok: i1) {
  %buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  scf.for %i = %n to %n step %n : i32 {
    %s = tile.dot %a, %b, %acc {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %t = tile.dot %a, %a, %acc {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  %u = tile.dot %b, %b, %acc {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  %v = tile.dot %a, %b, %acc {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  scf.if %ok {
    %w = tile.dot %a, %b, %acc {zero_annihilates} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %y = tile.dot %a, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}
