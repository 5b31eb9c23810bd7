// Arithmetic in f64, between a conversion to f64 and a conversion to another type.
// RUN: split-file %s %t
// RUN: emit-cuda %t/double.mlir | FileCheck %s
// RUN: not emit-cuda %t/rounded_twice.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not emit-cuda %t/untranslated.mlir 2>&1 | FileCheck %s --check-prefix=UNTRANSLATED

// CHECK: const auto turns = map<RowVector<float, 16, kWarps>>([&](float
// CHECK-NEXT: const double s = exp2(static_cast<double>(t)) * 0.33333333333333331;
// CHECK-NEXT: return static_cast<float>(fabs(s - rint(s)));

//--- double.mlir
func.func @turns(%x: !tile.view<f32, 1>) attributes {tile.warps = 1 : i32} {
  %yes = arith.constant true
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16xf32>
  %third = arith.constant dense<0.33333333333333331> : tensor<16xf64>
  %w = arith.extf %t : tensor<16xf32> to tensor<16xf64>
  %p = math.exp2 %w : tensor<16xf64>
  %s = arith.mulf %p, %third : tensor<16xf64>
  %n = math.roundeven %s : tensor<16xf64>
  %d = arith.subf %s, %n : tensor<16xf64>
  %a = math.absf %d : tensor<16xf64>
  %turns = arith.truncf %a : tensor<16xf64> to tensor<16xf32>
  tile.store %turns, %x rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// TWICE: error: 'arith.truncf' op has no translation to CUDA
//--- rounded_twice.mlir
func.func @turns(%x: !tile.view<bf16, 1>, %n: i32) attributes {tile.warps = 1 : i32} {
  %yes = arith.constant true
  %row = tile.iota 0 : tensor<16xi32>
  %w = arith.sitofp %row : tensor<16xi32> to tensor<16xf64>
  %s = math.exp2 %w : tensor<16xf64>
  %h = arith.truncf %s : tensor<16xf64> to tensor<16xbf16>
  tile.store %h, %x rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16xbf16>, !tile.view<bf16, 1>
  return
}

// UNTRANSLATED: error: 'math.log2' op has no translation to CUDA
//--- untranslated.mlir
func.func @turns(%x: !tile.view<f32, 1>, %n: i32) attributes {tile.warps = 1 : i32} {
  %yes = arith.constant true
  %row = tile.iota 0 : tensor<16xi32>
  %w = arith.sitofp %row : tensor<16xi32> to tensor<16xf64>
  %l = math.log2 %w : tensor<16xf64>
  %y = arith.truncf %l : tensor<16xf64> to tensor<16xf32>
  tile.store %y, %x rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}
