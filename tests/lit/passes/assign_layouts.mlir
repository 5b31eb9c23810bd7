// RUN: nsa-opt %s --tile-assign-layouts=target=gpu | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: nsa-opt %s --tile-assign-layouts=target=cpu | FileCheck %s --check-prefixes=CHECK,CPU

// CHECK-LABEL: func.func @half
func.func @half(%view: !tile.view<bf16, 1>, %zero: f32, %none: f32, %ok: i1, %first: i32, %past: i32) attributes {tile.warps = 4 : i32} {
  // A splat takes the layout of its rank.
  // GPU: tile.splat %arg1 {tile.layout = #tile.layout<accumulator>} : tensor<64x32xf32>
  // GPU: tile.splat %arg1 {tile.layout = #tile.layout<accumulator>} : tensor<64x48xf32>
  // GPU: tile.splat %arg2 {tile.layout = #tile.layout<row>} : tensor<64xf32>
  // CPU-COUNT-3: tile.splat {{.*}} {tile.layout = #tile.layout<lanes>}
  %no_scores = tile.splat %zero : tensor<64x32xf32>
  %no_output = tile.splat %zero : tensor<64x48xf32>
  %m_none = tile.splat %none : tensor<64xf32>
  // GPU: tile.load {{.*}} {
  // GPU: } {tile.layout = #tile.layout<operand_a>} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
  // CPU: } {tile.layout = #tile.layout<lanes>} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<64x64xbf16>
  // CHECK: scf.for
  // CHECK-NOT: tile.layout = {{.*}}scf.for
  %m, %o = scf.for %i = %first to %past step %past iter_args(%m_old = %m_none, %o_old = %no_output) -> (tensor<64xf32>, tensor<64x48xf32>) : i32 {
    // GPU: } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    // GPU: } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<32x48xbf16>
    // CPU: } {tile.layout = #tile.layout<row_major>} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    // CPU: } {tile.layout = #tile.layout<row_major>} : !tile.view<bf16, 1> -> tensor<32x48xbf16>
    %k = tile.load %view rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %v = tile.load %view rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<bf16, 1> -> tensor<32x48xbf16>
    // GPU: tile.dot {{.*}} {tile.layout = #tile.layout<accumulator>, transpose_b}
    // CPU: tile.dot {{.*}} {tile.layout = #tile.layout<lanes>, transpose_b}
    %s = tile.dot %q, %k, %no_scores {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16> -> tensor<64x32xf32>
    // GPU: tile.reduce max {{.*}} {tile.layout = #tile.layout<row>}
    // CPU: tile.reduce max {{.*}} {tile.layout = #tile.layout<lanes>}
    %m_new = tile.reduce max %s : tensor<64x32xf32> -> tensor<64xf32>
    // GPU: tile.map{{.*}} -> tensor<64x32xbf16> attributes {tile.layout = #tile.layout<operand_a>}
    // CPU: tile.map{{.*}} -> tensor<64x32xbf16> attributes {tile.layout = #tile.layout<lanes>}
    %p = tile.map(%e = %s : tensor<64x32xf32>, %n = %m_old : tensor<64xf32>) at (%row, %column) -> tensor<64x32xbf16> {
      %d = arith.subf %e, %n : f32
      %t = arith.truncf %d : f32 to bf16
      tile.yield %t : bf16
    }
    // GPU: tile.dot {{.*}} {tile.layout = #tile.layout<accumulator>} :
    // CPU: tile.dot {{.*}} {tile.layout = #tile.layout<lanes>} :
    %o_new = tile.dot %p, %v, %o_old : tensor<64x32xbf16>, tensor<32x48xbf16> -> tensor<64x48xf32>
    scf.yield %m_new, %o_new : tensor<64xf32>, tensor<64x48xf32>
  }
  return
}

// f32 has no ldmatrix: a loaded left side stays in shared memory, a computed one in the accumulator's registers.
// GPU-LABEL: func.func @float
func.func @float(%view: !tile.view<f32, 1>, %acc: tensor<32x32xf32>, %ok: i1) attributes {tile.warps = 2 : i32} {
  // GPU: } {tile.layout = #tile.layout<shared>} : !tile.view<f32, 1> -> tensor<32x32xf32>
  // GPU: } {tile.layout = #tile.layout<shared>} : !tile.view<f32, 1> -> tensor<32x32xf32>
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<32x32xf32>
  %k = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<32x32xf32>
  %s = tile.dot %q, %k, %acc {transpose_b} : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  // GPU: tile.map{{.*}} attributes {tile.layout = #tile.layout<accumulator>}
  %p = tile.map(%e = %s : tensor<32x32xf32>) at (%row, %column) -> tensor<32x32xf32> {
    %x = math.exp2 %e : f32
    tile.yield %x : f32
  }
  %o = tile.dot %p, %k, %acc : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return
}

// The left side of 16-bit types may stay in shared memory.
// CHECK-LABEL: func.func @stays
// GPU: } {tile.layout = #tile.layout<shared>, tile.stay_in_shared = true} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
// CPU: } {tile.layout = #tile.layout<lanes>, tile.stay_in_shared = true} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
// GPU: } {tile.layout = #tile.layout<operand_a>, tile.stay_in_shared = false} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
func.func @stays(%view: !tile.view<bf16, 1>, %out: !tile.view<f32, 1>, %zero: f32, %ok: i1) attributes {tile.warps = 4 : i32} {
  %none = tile.splat %zero : tensor<64x32xf32>
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.stay_in_shared = true} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
  %p = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.stay_in_shared = false} : !tile.view<bf16, 1> -> tensor<64x64xbf16>
  %k = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  %s = tile.dot %q, %k, %none {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16> -> tensor<64x32xf32>
  %t = tile.dot %p, %k, %s {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16> -> tensor<64x32xf32>
  tile.store %t, %out rows(%r) {
    tile.at [%r] if %ok
  } : tensor<64x32xf32>, !tile.view<f32, 1>
  return
}

// A map reads the fragments of a left side as they are, in whatever order the two ask for it.
// CHECK-LABEL: func.func @operand_of_map
func.func @operand_of_map(%view: !tile.view<bf16, 1>, %b: tensor<16x16xbf16>, %acc: tensor<16x16xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  // GPU: } {tile.layout = #tile.layout<operand_a>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  // GPU: } {tile.layout = #tile.layout<operand_a>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  // GPU: } {tile.layout = #tile.layout<accumulator>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %y = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %z = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %s = tile.dot %x, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  // GPU: tile.map{{.*}} -> tensor<16x16xbf16> attributes {tile.layout = #tile.layout<operand_a>}
  %sum = tile.map(%c = %x : tensor<16x16xbf16>, %d = %y : tensor<16x16xbf16>, %e = %z : tensor<16x16xbf16>) at (%row, %column) -> tensor<16x16xbf16> {
    tile.yield %e : bf16
  }
  %t = tile.dot %y, %b, %s : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  %u = tile.dot %sum, %b, %t : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// A computed tile that a dot reads from memory is converted once: a right side, and a left side that is given transposed. Its
// registers stay a left side.
// CHECK-LABEL: func.func @computed
func.func @computed(%s: tensor<16x32xf32>, %q: !tile.view<bf16, 1>, %acc: tensor<32x16xf32>, %square: tensor<32x32xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  // GPU: %[[P:.*]] = tile.map{{.*}} attributes {tile.layout = #tile.layout<operand_a>}
  // CPU: %[[P:.*]] = tile.map{{.*}} attributes {tile.layout = #tile.layout<lanes>}
  %p = tile.map(%e = %s : tensor<16x32xf32>) at (%row, %column) -> tensor<16x32xbf16> {
    %t = arith.truncf %e : f32 to bf16
    tile.yield %t : bf16
  }
  // GPU: %[[READ:.*]] = tile.convert_layout %[[P]] {tile.layout = #tile.layout<shared>} : tensor<16x32xbf16>
  // CPU: %[[READ:.*]] = tile.convert_layout %[[P]] {tile.layout = #tile.layout<row_major>} : tensor<16x32xbf16>
  // GPU-NOT: tile.convert_layout
  %k = tile.load %q rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.splat %zero : tensor<16x16xf32>
  %wide = tile.load %q rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<32x16xbf16>
  // CHECK: tile.dot %[[P]],
  %t = tile.dot %p, %wide, %zeros : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
  // CHECK: tile.dot %[[READ]],
  %u = tile.dot %p, %k, %acc {transpose_a} : tensor<16x32xbf16>, tensor<16x16xbf16> -> tensor<32x16xf32>
  // CHECK: tile.dot %{{.*}}, %[[READ]],
  %v = tile.dot %wide, %p, %square : tensor<32x16xbf16>, tensor<16x32xbf16> -> tensor<32x32xf32>
  return
}

// A loaded tile that is a left side and a right side stays in shared memory on a GPU. A CPU has a copy of it by rows.
// CHECK-LABEL: func.func @both_sides
func.func @both_sides(%view: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  // GPU: } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  // CPU: } {tile.layout = #tile.layout<lanes>} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  // CPU-NEXT: tile.convert_layout %{{.*}} {tile.layout = #tile.layout<row_major>}
  // GPU-NOT: tile.convert_layout
  %k = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  %s = tile.dot %k, %q, %acc {transpose_b} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  // CHECK: tile.dot
  %t = tile.dot %q, %k, %s {transpose_a} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// One value per column.
// CHECK-LABEL: func.func @columns
func.func @columns(%view: !tile.view<f32, 1>, %s: tensor<16x32xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  // GPU: } {tile.layout = #tile.layout<column>} : !tile.view<f32, 1> -> tensor<32xf32, #tile.column>
  // CPU: } {tile.layout = #tile.layout<lanes>} : !tile.view<f32, 1> -> tensor<32xf32, #tile.column>
  %v = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<32xf32, #tile.column>
  // GPU: tile.reduce add {{.*}} {tile.layout = #tile.layout<column>}
  // CPU: tile.reduce add {{.*}} {tile.layout = #tile.layout<lanes>}
  %sum = tile.reduce add %s : tensor<16x32xf32> -> tensor<32xf32, #tile.column>
  // GPU: tile.map{{.*}} attributes {tile.layout = #tile.layout<column>}
  %w = tile.map(%a = %v : tensor<32xf32, #tile.column>, %b = %sum : tensor<32xf32, #tile.column>) at (%row, %column) -> tensor<32xf32, #tile.column> {
    %x = arith.addf %a, %b : f32
    tile.yield %x : f32
  }
  // GPU: tile.map{{.*}} attributes {tile.layout = #tile.layout<accumulator>}
  %y = tile.map(%a = %s : tensor<16x32xf32>, %b = %w : tensor<32xf32, #tile.column>) at (%row, %column) -> tensor<16x32xf32> {
    %x = arith.subf %a, %b : f32
    tile.yield %x : f32
  }
  return
}

// A loaded tile that a product reads from memory and another operation in registers is loaded to registers, and written to
// memory from there. A left side is read where the other operation reads it.
// CHECK-LABEL: func.func @product_and_elementwise
// GPU: } {tile.layout = #tile.layout<accumulator>} : !tile.view<f32, 1> -> tensor<32x32xf32>
// GPU: %[[K:.*]] = tile.convert_layout %{{.*}} {tile.layout = #tile.layout<shared>} : tensor<32x32xf32>
// GPU: } {tile.layout = #tile.layout<accumulator>} : !tile.view<f32, 1> -> tensor<32x32xf32>
// GPU: tile.dot %{{.*}}, %[[K]], %{{.*}} {tile.layout = #tile.layout<accumulator>}
func.func @product_and_elementwise(%view: !tile.view<f32, 1>, %acc: tensor<32x32xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  %k = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<32x32xf32>
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<32x32xf32>
  %y = tile.dot %q, %k, %acc : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  %of_k = tile.reduce add %k : tensor<32x32xf32> -> tensor<32xf32>
  %of_q = tile.reduce add %q : tensor<32x32xf32> -> tensor<32xf32>
  return
}

// A tile that is both sides of products, and read elementwise: both products read the copy.
// CHECK-LABEL: func.func @both_sides_and_elementwise
// GPU: } {tile.layout = #tile.layout<accumulator>} : !tile.view<bf16, 1> -> tensor<32x32xbf16>
// GPU: %[[X:.*]] = tile.convert_layout %{{.*}} {tile.layout = #tile.layout<shared>} : tensor<32x32xbf16>
// GPU: tile.dot %[[X]], %[[X]], %{{.*}} {tile.layout = #tile.layout<accumulator>, transpose_b}
func.func @both_sides_and_elementwise(%view: !tile.view<bf16, 1>, %acc: tensor<32x32xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<32x32xbf16>
  %y = tile.dot %x, %x, %acc {transpose_b} : tensor<32x32xbf16>, tensor<32x32xbf16> -> tensor<32x32xf32>
  %wide = tile.map(%e = %x : tensor<32x32xbf16>) at (%row, %column) -> tensor<32x32xf32> {
    %w = arith.extf %e : bf16 to f32
    tile.yield %w : f32
  }
  return
}
