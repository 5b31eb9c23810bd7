// RUN: nsa-opt %s --tile-assign-layouts=target=cpu --split-input-file | FileCheck %s

// A CPU pads the columns of a striped tile, so they may be any number.
// CHECK-LABEL: func.func @columns
// CHECK: {tile.layout = #tile.layout<striped>} : tensor<2x12xf32>
func.func @columns(%f: f32) {
  %x = tile.splat %f : tensor<2x12xf32>
  return
}

// -----

// An operation that needs rows along the lanes decides for all tiles of its kernel.
// CHECK-LABEL: func.func @last
// CHECK: {tile.layout = #tile.layout<lanes>} : tensor<3x16xf32>
// CHECK: tile.reduce last {{.*}} {tile.layout = #tile.layout<lanes>}
func.func @last(%f: f32) {
  %x = tile.splat %f : tensor<3x16xf32>
  %y = tile.reduce last %x : tensor<3x16xf32> -> tensor<3xf32>
  return
}
