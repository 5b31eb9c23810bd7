// RUN: nsa-opt %s --tile-assign-layouts=target=gpu --split-input-file | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: nsa-opt %s --tile-assign-layouts=target=cpu --split-input-file | FileCheck %s --check-prefixes=CHECK,CPU

// Two rows are no slab of 16. So each row lies across all threads, or along the vector lanes.
// CHECK-LABEL: func.func @long_rows
// CHECK: tile.load
// CHECK: {tile.layout = #tile.layout<striped>} : !tile.view<f32, 1> -> tensor<2x1024xf32>
// CHECK: {tile.layout = #tile.layout<striped>} : !tile.view<f32, 1> -> tensor<1024xf32, #tile.column>
// CHECK: tile.reduce add {{.*}} {tile.layout = #tile.layout<uniform>}
// CHECK: tile.reduce max {{.*}} {tile.layout = #tile.layout<striped>}
func.func @long_rows(%view: !tile.view<f32, 1>, %ok: i1) attributes {tile.warps = 4 : i32} {
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<2x1024xf32>
  %weight = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<1024xf32, #tile.column>
  %sum = tile.reduce add %x : tensor<2x1024xf32> -> tensor<2xf32>
  %max = tile.reduce max %x : tensor<2x1024xf32> -> tensor<1024xf32, #tile.column>
  return
}

// -----

// All tiles of a kernel are laid out in one way: one tile without whole slabs is enough.
// CHECK-LABEL: func.func @one_is_enough
// CHECK: {tile.layout = #tile.layout<striped>} : tensor<16x64xf32>
// CHECK: {tile.layout = #tile.layout<uniform>} : tensor<3xf32>
func.func @one_is_enough(%f: f32) attributes {tile.warps = 1 : i32} {
  %x = tile.splat %f : tensor<16x64xf32>
  %y = tile.splat %f : tensor<3xf32>
  return
}

// -----

// Whole slabs are fragments.
// CHECK-LABEL: func.func @slabs
// GPU: {tile.layout = #tile.layout<accumulator>} : tensor<32x64xf32>
// GPU: {tile.layout = #tile.layout<row>} : tensor<32xf32>
// CPU: {tile.layout = #tile.layout<lanes>} : tensor<32x64xf32>
// CPU: {tile.layout = #tile.layout<lanes>} : tensor<32xf32>
func.func @slabs(%f: f32) attributes {tile.warps = 2 : i32} {
  %x = tile.splat %f : tensor<32x64xf32>
  %y = tile.splat %f : tensor<32xf32>
  return
}

// -----

// A CPU program has one warp, whatever the attribute says.
// CHECK-LABEL: func.func @one_warp
// GPU: {tile.layout = #tile.layout<striped>} : tensor<16x64xf32>
// CPU: {tile.layout = #tile.layout<lanes>} : tensor<16x64xf32>
func.func @one_warp(%f: f32) attributes {tile.warps = 2 : i32} {
  %x = tile.splat %f : tensor<16x64xf32>
  return
}
