// What the emitter cannot say is an error on the operation.
// RUN: split-file %s %t
// RUN: not emit-cuda --scheduled %t/no_warps.mlir 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not emit-cuda --scheduled %t/no_layout.mlir 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not emit-cuda --scheduled %t/no_place.mlir 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not emit-cuda --scheduled %t/store_of_shared.mlir 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not emit-cuda --scheduled %t/unfused.mlir 2>&1 | FileCheck %s --check-prefix=UNFUSED
// RUN: not emit-cuda --scheduled %t/right_in_registers.mlir 2>&1 | FileCheck %s --check-prefix=RIGHT
// RUN: not emit-cuda --scheduled %t/left_in_registers.mlir 2>&1 | FileCheck %s --check-prefix=LEFT
// RUN: not emit-cuda --scheduled %t/partial.mlir 2>&1 | FileCheck %s --check-prefix=PARTIAL
// RUN: not emit-cuda --scheduled %t/striped.mlir 2>&1 | FileCheck %s --check-prefix=STRIPED
// RUN: not emit-cuda --scheduled %t/rows.mlir 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not emit-cuda --scheduled %t/untranslated.mlir 2>&1 | FileCheck %s --check-prefix=UNTRANSLATED
// RUN: not emit-cuda --scheduled %t/half_arithmetic.mlir 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not emit-cuda --scheduled %t/index_loop.mlir 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not emit-cuda --scheduled %t/argument.mlir 2>&1 | FileCheck %s --check-prefix=ARGUMENT

// WARPS: error: has no 'tile.warps'
//--- no_warps.mlir
func.func @f() {
  return
}

// LAYOUT: error: makes a tile without 'tile.layout'
//--- no_layout.mlir
func.func @f(%y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %t = tile.splat %c : tensor<16xf32>
  tile.store %t, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// PLACE: error: 'tile.buffer' op has no 'tile.shared_offset'
//--- no_place.mlir
func.func @f() attributes {tile.warps = 1 : i32} {
  %t = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  return
}

// SHARED: error: makes a tile of rank 2 in the layout shared, which is not in registers
//--- store_of_shared.mlir
func.func @f(%x: !tile.view<f32, 1>) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %buffer = tile.buffer {tile.shared_offset = 0 : i64} : !tile.buffer<tensor<16x16xf32>>
  %t = tile.read %buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xf32>>
  tile.store %t, %x rows(%r) {
    tile.at [%r] if %always
  } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// UNFUSED: error: 'arith.negf' op has no translation to CUDA
//--- unfused.mlir
func.func @f(%x: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %t = tile.splat %c {tile.layout = #tile.layout<accumulator>} : tensor<16x16xf32>
  %u = arith.negf %t {tile.layout = #tile.layout<accumulator>} : tensor<16x16xf32>
  tile.store %u, %x rows(%r) {
    tile.at [%r] if %always
  } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// RIGHT: error: 'tile.dot' op has a right side that is not in shared memory
//--- right_in_registers.mlir
func.func @f(%x: !tile.view<bf16, 1>, %y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %always
  } {tile.layout = #tile.layout<accumulator>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %zeros = tile.splat %c {tile.layout = #tile.layout<accumulator>} : tensor<16x16xf32>
  %p = tile.dot %t, %t, %zeros {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  tile.store %p, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// LEFT: error: 'tile.dot' op has a transposed left side that is not in shared memory
//--- left_in_registers.mlir
func.func @f(%x: !tile.view<bf16, 1>, %y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %a = tile.load %x rows(%r) {
    tile.at [%r] if %always
  } {tile.layout = #tile.layout<accumulator>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %buffer = tile.buffer {tile.shared_offset = 0 : i64} : !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %zeros = tile.splat %c {tile.layout = #tile.layout<accumulator>} : tensor<16x16xf32>
  %p = tile.dot %a, %b, %zeros {tile.layout = #tile.layout<accumulator>, transpose_a} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  tile.store %p, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// PARTIAL: error: 'tile.reduce' op reduces columns that 2 warps hold; they need partial results
//--- partial.mlir
func.func @f(%y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 2 : i32} {
  %always = arith.constant true
  %t = tile.splat %c {tile.layout = #tile.layout<accumulator>} : tensor<32x16xf32>
  %u = tile.reduce add %t {tile.layout = #tile.layout<column>} : tensor<32x16xf32> -> tensor<16xf32, #tile.column>
  tile.store %u, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16xf32, #tile.column>, !tile.view<f32, 1>
  return
}

// STRIPED: error: 'tile.reduce' op reduces rows that 2 warps hold; they need partial results
//--- striped.mlir
func.func @f(%y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 2 : i32} {
  %always = arith.constant true
  %t = tile.splat %c {tile.layout = #tile.layout<striped>} : tensor<2x512xf32>
  %u = tile.reduce add %t {tile.layout = #tile.layout<uniform>} : tensor<2x512xf32> -> tensor<2xf32>
  tile.store %u, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<2xf32>, !tile.view<f32, 1>
  return
}

// ROWS: error: makes a tile of 24 rows, which 1 warps of 16 rows cannot split
//--- rows.mlir
func.func @f(%y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %t = tile.splat %c {tile.layout = #tile.layout<row>} : tensor<24xf32>
  tile.store %t, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<24xf32>, !tile.view<f32, 1>
  return
}

// UNTRANSLATED: error: 'math.cos' op has no translation to CUDA
//--- untranslated.mlir
func.func @f(%y: !tile.view<f32, 1>, %c: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %d = math.cos %c : f32
  %t = tile.splat %d {tile.layout = #tile.layout<row>} : tensor<16xf32>
  tile.store %t, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// HALF: error: 'arith.addf' op has no translation to CUDA
//--- half_arithmetic.mlir
func.func @f(%y: !tile.view<bf16, 1>) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %t = tile.load %y rows(%r) {
    tile.at [%r] if %always
  } {tile.layout = #tile.layout<row>} : !tile.view<bf16, 1> -> tensor<16xbf16>
  %u = tile.map(%a = %t : tensor<16xbf16>) at (%row, %column) -> tensor<16xbf16> attributes {tile.layout = #tile.layout<row>} {
    %b = arith.addf %a, %a : bf16
    tile.yield %b : bf16
  }
  tile.store %u, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16xbf16>, !tile.view<bf16, 1>
  return
}

// INDEX: error: 'arith.constant' op has no translation to CUDA
//--- index_loop.mlir
func.func @f(%status: !tile.view<i32, 1>, %n: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : index
  %ten = arith.constant 10 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %ten step %one {
    tile.report %always, %n, %n to %status : !tile.view<i32, 1>
  }
  return
}

// ARGUMENT: error: takes an argument of type 'f64', which no kernel can
//--- argument.mlir
func.func @f(%d: f64) attributes {tile.warps = 1 : i32} {
  return
}
