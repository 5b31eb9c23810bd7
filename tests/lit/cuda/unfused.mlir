// Elementwise operations that no pass fused are maps of their own; decisions may be written by hand.
// RUN: emit-cuda --scheduled %s | FileCheck %s --match-full-lines --strict-whitespace

// CHECK-LABEL:unfused(const __grid_constant__ Arguments args) {
func.func @unfused(%x: !tile.view<f16, 1>, %y: !tile.view<f32, 1>, %bound: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  // CHECK-NEXT:  const auto x_tile = load_fragment<Fragment<f16, 16, 8, kWarps>>(args.x, 5, [&](int32 r) { return args.x.at(r); });
  // CHECK-NEXT:  const auto row = map<Fragment<int32, 16, 8, kWarps>>([](int32 row, int32) { return row; });
  // CHECK-NEXT:  const auto index = map<RowVector<int32, 16, kWarps>>([](int32 row) { return row; });
  // CHECK-NEXT:  const auto wide = map<Fragment<int32, 16, 8, kWarps>>([&](int32 index) { return index; }, index);
  // CHECK-NEXT:  const auto sum = map<Fragment<int32, 16, 8, kWarps>>([&](int32 row, int32 wide) { return row + wide; }, row, wide);
  // CHECK-NEXT:  const auto number = map<Fragment<float, 16, 8, kWarps>>([&](int32 sum) { return static_cast<float>(sum); }, sum);
  // CHECK-NEXT:  const auto single = map<Fragment<float, 16, 8, kWarps>>([&](f16 x_tile) { return to_float(x_tile); }, x_tile);
  // CHECK-NEXT:  const auto limited = map<Fragment<float, 16, 8, kWarps>>(
  // CHECK-NEXT:      [&](float single, float x) { return max_or_nan(single, x); }, single, splat<Fragment<float, 16, 8, kWarps>>(args.bound));
  // CHECK-NEXT:  const auto total = map<Fragment<float, 16, 8, kWarps>>(
  // CHECK-NEXT:      [&](float number, float limited) { return number + limited; }, number, limited);
  // CHECK-NEXT:  const auto smooth = map<Fragment<float, 16, 8, kWarps>>([&](float total) { return erff(total); }, total);
  // CHECK-NEXT:  store_tile(smooth, args.y, 8, [&](int32 r) { return args.y.at(r); });
  %x_tile = tile.load %x rows(%r) {
    tile.at [%r] if %always
  } columns(5) {tile.layout = #tile.layout<accumulator>} : !tile.view<f16, 1> -> tensor<16x8xf16>
  %row = tile.iota 0 {tile.layout = #tile.layout<accumulator>} : tensor<16x8xi32>
  %index = tile.iota 0 {tile.layout = #tile.layout<row>} : tensor<16xi32>
  %wide = tile.broadcast %index {tile.layout = #tile.layout<accumulator>} : tensor<16xi32> -> tensor<16x8xi32>
  %sum = arith.addi %row, %wide {tile.layout = #tile.layout<accumulator>} : tensor<16x8xi32>
  %number = arith.sitofp %sum {tile.layout = #tile.layout<accumulator>} : tensor<16x8xi32> to tensor<16x8xf32>
  %single = tile.cast %x_tile {tile.layout = #tile.layout<accumulator>} : tensor<16x8xf16> -> tensor<16x8xf32>
  %bounds = tile.splat %bound {tile.layout = #tile.layout<accumulator>} : tensor<16x8xf32>
  %limited = arith.maximumf %single, %bounds {tile.layout = #tile.layout<accumulator>} : tensor<16x8xf32>
  %total = arith.addf %number, %limited {tile.layout = #tile.layout<accumulator>} : tensor<16x8xf32>
  %smooth = math.erf %total {tile.layout = #tile.layout<accumulator>} : tensor<16x8xf32>
  tile.store %smooth, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16x8xf32>, !tile.view<f32, 1>
  return
}
