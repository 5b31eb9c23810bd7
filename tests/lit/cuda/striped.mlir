// Rows that lie across all threads of four warps: one row of 1024 columns, of which the memory has 1000.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

//      CHECK:  extern __shared__ __align__(128) unsigned char shared_memory[];
// CHECK-NEXT:  const SharedTile<float, 8, 4> sum_shared(shared_memory);
// CHECK-EMPTY:
// CHECK-NEXT:  const int32 row = blockIdx.x;
// CHECK-NEXT:  const bool exists = row < args.n;
// CHECK-NEXT:  const auto t = load_fragment<StripedTile<bf16, 1, 1024, kWarps>>(
// CHECK-NEXT:      args.x, 1000, [&](int32 r) { return args.x.at(row + r).only_if(exists); });
// CHECK-NEXT:  const auto w = load_columns<StripedColumns<float, 1024, kWarps>>(
// CHECK-NEXT:      args.weight, [&](int32 c) { return args.weight.at(c); });
// CHECK-NEXT:  const auto wide = map<StripedTile<float, 1, 1024, kWarps>>([&](bf16 t) { return to_float(t); }, t);
// CHECK-NEXT:  const auto square = map<StripedTile<float, 1, 1024, kWarps>>([&](float wide) { return wide * wide; }, wide);
// CHECK-NEXT:  write_partials_add(square, sum_shared);
// CHECK-NEXT:  const auto most = reduce_rows_max(square);
// CHECK-NEXT:  __syncthreads();
// CHECK-NEXT:  const auto sum = read_partials_add<UniformRows<float, 1, kWarps>>(sum_shared);
// CHECK-NEXT:  const auto out = map<StripedTile<bf16, 1, 1024, kWarps>>(
// CHECK-NEXT:      [&](float wide, float sum, float w, float most) { return wide * sum * w + most; }, wide, sum, w, most);
// CHECK-NEXT:  store_tile(out, args.y, 1000, [&](int32 r) { return args.y.at(row + r).only_if(exists); });
// CHECK-NEXT:  store_rows(sum, args.scale, [&](int32 r) { return args.scale.at(row).only_if(exists); });
// CHECK-NEXT:}
func.func @norm(%x: !tile.view<bf16, 1>, %weight: !tile.view<f32, 1>, %scale: !tile.view<f32, 1>, %y: !tile.view<bf16, 1>, %n: i32)
    attributes {tile.warps = 4 : i32} {
  %row = tile.program_id x
  %exists = arith.cmpi slt, %row, %n : i32
  %yes = arith.constant true
  %t = tile.load %x rows(%r) {
    %i = arith.addi %row, %r : i32
    tile.at [%i] if %exists
  } columns(1000) : !tile.view<bf16, 1> -> tensor<1x1024xbf16>
  %w = tile.load %weight rows(%c) {
    tile.at [%c] if %yes
  } : !tile.view<f32, 1> -> tensor<1024xf32, #tile.column>
  %wide = tile.cast %t : tensor<1x1024xbf16> -> tensor<1x1024xf32>
  %square = arith.mulf %wide, %wide : tensor<1x1024xf32>
  %sum = tile.reduce add %square : tensor<1x1024xf32> -> tensor<1xf32>
  %most = tile.reduce max %square : tensor<1x1024xf32> -> tensor<1024xf32, #tile.column>
  %w_all = tile.broadcast %w : tensor<1024xf32, #tile.column> -> tensor<1x1024xf32>
  %most_all = tile.broadcast %most : tensor<1024xf32, #tile.column> -> tensor<1x1024xf32>
  %sum_all = tile.broadcast %sum : tensor<1xf32> -> tensor<1x1024xf32>
  %a = arith.mulf %wide, %sum_all : tensor<1x1024xf32>
  %b = arith.mulf %a, %w_all : tensor<1x1024xf32>
  %c = arith.addf %b, %most_all : tensor<1x1024xf32>
  %out = tile.cast %c : tensor<1x1024xf32> -> tensor<1x1024xbf16>
  tile.store %out, %y rows(%r) {
    %i = arith.addi %row, %r : i32
    tile.at [%i] if %exists
  } columns(1000) : tensor<1x1024xbf16>, !tile.view<bf16, 1>
  tile.store %sum, %scale rows(%r) {
    tile.at [%row] if %exists
  } : tensor<1xf32>, !tile.view<f32, 1>
  return
}
