// RUN: nsa-opt %s --tile-lower-to-cpu=lanes=16 --split-input-file --verify-diagnostics
// RUN: not nsa-opt %s --tile-lower-to-cpu=lanes=4 --split-input-file 2>&1 | FileCheck %s
// CHECK: error: 'func.func' op cannot be lowered for vectors of 4 lanes; there are 16 or 8

func.func @no_layout(%x: !tile.view<f32, 1>, %ok: i1) {
  // expected-error@+1 {{makes a tile without a layout; run tile-cpu first}}
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<16x16xf32>
  return
}

// -----

func.func @not_fused(%x: !tile.view<f32, 1>, %ok: i1) {
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<lanes>} : !tile.view<f32, 1> -> tensor<16x16xf32>
  // expected-error@+1 {{makes a tile but is not fused; run tile-cpu first}}
  %y = arith.addf %t, %t {tile.layout = #tile.layout<lanes>} : tensor<16x16xf32>
  return
}

// -----

// A call of libm has no place in an image.
func.func @libm(%x: !tile.view<f32, 1>, %a: f32, %ok: i1) {
  // expected-error@+1 {{cannot be lowered to the CPU}}
  %y = math.sin %a : f32
  %t = tile.splat %y {tile.layout = #tile.layout<lanes>} : tensor<16xf32>
  tile.store %t, %x rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @remainder(%x: !tile.view<f32, 1>, %a: f32, %ok: i1) {
  // expected-error@+1 {{cannot be lowered to the CPU}}
  %y = arith.remf %a, %a : f32
  %t = tile.splat %y {tile.layout = #tile.layout<lanes>} : tensor<16xf32>
  tile.store %t, %x rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @double(%a: f64) {
  // expected-error@+1 {{cannot be lowered to the CPU for f64}}
  %y = math.log2 %a : f64
  return
}

// -----

func.func @rounded_twice(%a: f64) {
  // expected-error@+1 {{cannot be lowered to the CPU for f64}}
  %y = arith.truncf %a : f64 to bf16
  return
}
