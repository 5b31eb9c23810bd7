// A row whose place a list tells reads the list only where the row exists.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: load_columns<ColumnVector<float, 16>>(args.x, [&](int32 r) {
// CHECK-NEXT: const bool exists = r < args.count;
// CHECK-NEXT: const int32 place = exists ? load_scalar(args.list, r) : 0;
// CHECK-NEXT: return args.x.at(place).only_if(exists);
func.func @listed(%x: !tile.view<f32, 1>, %list: !tile.view<i32, 1>, %y: !tile.view<f32, 1>, %count: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %listed = tile.load %x rows(%r) {
    %exists = arith.cmpi slt, %r, %count : i32
    %place = tile.load_scalar %list[%r] if %exists : !tile.view<i32, 1>
    tile.at [%place] if %exists
  } : !tile.view<f32, 1> -> tensor<16xf32, #tile.column>
  tile.store %listed, %y rows(%r) {
    tile.at [%r] if %always
  } : tensor<16xf32, #tile.column>, !tile.view<f32, 1>
  return
}
