// A store to a view of gradients takes a tile of f32, and the device library rounds it, or adds it.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: #include "gradient.cuh"
// CHECK: View<Gradient<bf16>, 1> narrow;
// CHECK: View<Gradient<f16>, 1> other;
// CHECK: View<Gradient<float>, 1> full;
// CHECK: store_tile(t, args.narrow, 8, [&](int32 r) { return args.narrow.at(r); });
// CHECK: store_rows(column, args.other, [&](int32 r) { return args.other.at(r); });
// CHECK: store_tile(t, args.full, 8, [&](int32 r) { return args.full.at(r); });
func.func @gradients(%x: !tile.view<f32, 1>, %narrow: !tile.view<!tile.gradient<bf16>, 1>,
                     %other: !tile.view<!tile.gradient<f16>, 1>, %full: !tile.view<!tile.gradient<f32>, 1>)
    attributes {tile.warps = 1 : i32} {
  %yes = arith.constant true
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16x8xf32>
  %column = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16xf32>
  tile.store %t, %narrow rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16x8xf32>, !tile.view<!tile.gradient<bf16>, 1>
  tile.store %column, %other rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16xf32>, !tile.view<!tile.gradient<f16>, 1>
  tile.store %t, %full rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16x8xf32>, !tile.view<!tile.gradient<f32>, 1>
  return
}
