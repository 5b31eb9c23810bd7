// A store whose rows go where another tile says: the row function takes the row's element of it, too.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: const auto where = map<RowVector<int32, 16, kWarps>>(
// CHECK: store_rows(
// CHECK-NEXT: x_rows, args.y, [&](int32 r, int32 place) { return args.y.at(r, place).only_if(place < args.count); }, where);
func.func @places(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 2>, %z: !tile.view<f32, 1>,
                  %count: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %x_rows = tile.load %x rows(%r) {
    tile.at [%r] if %always
  } : !tile.view<f32, 1> -> tensor<16xf32>
  %where = arith.fptosi %x_rows : tensor<16xf32> to tensor<16xi32>
  tile.store %x_rows, %y rows(%r, %place of %where : tensor<16xi32>) {
    %exists = arith.cmpi slt, %place, %count : i32
    tile.at [%r, %place] if %exists
  } : tensor<16xf32>, !tile.view<f32, 2>
  // Whole rows go there, too.
  // CHECK: const auto rows = load_fragment<
  // CHECK: store_tile(
  // CHECK-NEXT: rows, args.z, 16, [&](int32 r, int32 place) { return args.z.at(place).only_if(place < args.count); }, where);
  %rows = tile.load %x rows(%r) {
    tile.at [%r] if %always
  } columns(16) : !tile.view<f32, 1> -> tensor<16x16xf32>
  tile.store %rows, %z rows(%r, %place of %where : tensor<16xi32>) {
    %exists = arith.cmpi slt, %place, %count : i32
    tile.at [%place] if %exists
  } columns(16) : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}
