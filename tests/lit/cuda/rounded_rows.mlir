// A value of a row is rounded to 16 bits where it is computed; the map of a matrix rounds two columns at once.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: const auto rounded = map<RowVector<bf16, 16, kWarps>>([&](float t) { return to<bf16>(t + t); }, t);
// CHECK: const auto rounded_wide = map<Fragment<bf16, 16, 8, kWarps>>([&](float wide) { return wide + wide; }, wide);
func.func @rounded(%x: !tile.view<f32, 1>, %y: !tile.view<bf16, 1>) attributes {tile.warps = 1 : i32} {
  %yes = arith.constant true
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16xf32>
  %double = arith.addf %t, %t : tensor<16xf32>
  %rounded = tile.cast %double : tensor<16xf32> -> tensor<16xbf16>
  tile.store %rounded, %y rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16xbf16>, !tile.view<bf16, 1>
  %wide = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16x8xf32>
  %double_wide = arith.addf %wide, %wide : tensor<16x8xf32>
  %rounded_wide = tile.cast %double_wide : tensor<16x8xf32> -> tensor<16x8xbf16>
  tile.store %rounded_wide, %y rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16x8xbf16>, !tile.view<bf16, 1>
  return
}
