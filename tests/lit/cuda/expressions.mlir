// One map computes an elementwise expression, with indices, conversions and a maximum that keeps NaN.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

// CHECK-LABEL:expression(const __grid_constant__ Arguments args) {
func.func @expression(%x: !tile.view<f16, 1>, %y: !tile.view<f32, 1>, %bound: f32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  // CHECK-NEXT:  const auto x_tile = load_fragment<Fragment<f16, 16, 8, kWarps>>(args.x, 5, [&](int32 r) { return args.x.at(r); });
  // CHECK-NEXT:  const auto smooth = map<Fragment<float, 16, 8, kWarps>>([&](f16 x_tile, int32 row, int32) {
  // CHECK-NEXT:    const float error = erff(static_cast<float>(row + row) + max_or_nan(to_float(x_tile), args.bound));
  // CHECK-NEXT:    return rintf(error);
  // CHECK-NEXT:  }, x_tile);
  // CHECK-NEXT:  store_tile(smooth, args.y, 8, [&](int32 r) { return args.y.at(r); });
  %x_tile = tile.load %x rows(%r) {
    tile.at [%r] if %always
  } columns(5) : !tile.view<f16, 1> -> tensor<16x8xf16>
  %row = tile.iota 0 : tensor<16x8xi32>
  %index = tile.iota 0 : tensor<16xi32>
  %wide = tile.broadcast %index : tensor<16xi32> -> tensor<16x8xi32>
  %sum = arith.addi %row, %wide : tensor<16x8xi32>
  %number = arith.sitofp %sum : tensor<16x8xi32> to tensor<16x8xf32>
  %single = tile.cast %x_tile : tensor<16x8xf16> -> tensor<16x8xf32>
  %bounds = tile.splat %bound : tensor<16x8xf32>
  %limited = arith.maximumf %single, %bounds : tensor<16x8xf32>
  %total = arith.addf %number, %limited : tensor<16x8xf32>
  %error = math.erf %total : tensor<16x8xf32>
  %smooth = math.roundeven %error : tensor<16x8xf32>
  tile.store %smooth, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16x8xf32>, !tile.view<f32, 1>
  return
}
