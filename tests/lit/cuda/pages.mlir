// Views of pages: the table is asked only for rows that exist, no code steps from row to row, and what is not in pages is
// written as ever.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

//      CHECK:#include "paged_view.cuh"
//      CHECK:struct Arguments {
// CHECK-NEXT:  PagedView<bf16, 3, 64> k;
// CHECK-NEXT:  PagedView<bf16, 3, 64> k_spare;
// CHECK-NEXT:  PagedView<int32, 2, 5> list;
// CHECK-NEXT:  PagedView<float, 2, 1> out;
// CHECK-NEXT:  View<bf16, 3> q;
// CHECK-NEXT:  alignas(8) int32 past;
// CHECK-NEXT:};
//      CHECK:pages(const __grid_constant__ Arguments args) {
func.func @pages(%k: !tile.view<bf16, 3, 64>, %k_spare: !tile.view<bf16, 3, 64>, %list: !tile.view<i32, 2, 5>,
                 %out: !tile.view<f32, 2, 1>, %q: !tile.view<bf16, 3, 0>, %past: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %zero_f = arith.constant 0.0 : f32
  //      CHECK:  const int32 batch = blockIdx.z;
  // CHECK-NEXT:  const int32 head = load_scalar(args.list, batch, args.past);
  %batch = tile.program_id z
  %head = tile.load_scalar %list[%batch, %past] : !tile.view<i32, 2, 5>
  // CHECK-NEXT:  const auto chosen = args.k_spare.present() ? args.k_spare : args.k;
  %is_spare = tile.present %k_spare : !tile.view<bf16, 3, 64>
  %chosen = arith.select %is_spare, %k_spare, %k : !tile.view<bf16, 3, 64>
  // CHECK-NEXT:  load_tile<kThreads>(q_rows_shared, args.q, 16, evenly_spaced([&](int32 r) { return args.q.at(batch, r, head); }));
  %q_rows = tile.load %q rows(%r) {
    tile.at [%batch, %r, %head] if %always
  } : !tile.view<bf16, 3> -> tensor<16x16xbf16>
  // CHECK-NEXT:  load_tile<kThreads>(all_shared, args.k, 16, [&](int32 r) { return args.k.at(batch, r, head); });
  %all = tile.load %k rows(%r) {
    tile.at [%batch, %r, %head] if %always
  } : !tile.view<bf16, 3, 64> -> tensor<16x16xbf16>
  // CHECK-NEXT:  load_tile<kThreads>(some_shared, chosen, 16, [&](int32 r) {
  // CHECK-NEXT:    const int32 time = args.past - r;
  // CHECK-NEXT:    return chosen.at_if(time >= 0, batch, time, head).from_column(args.past * 16);
  // CHECK-NEXT:  });
  %row_columns = arith.constant 64 : i32
  %some = tile.load %chosen rows(%r) {
    %time = arith.subi %past, %r : i32
    %exists = arith.cmpi sge, %time, %zero : i32
    tile.at [%batch, %time, %head] if %exists
  } chunk(%past of %row_columns) : !tile.view<bf16, 3, 64> -> tensor<16x16xbf16>
  %none = tile.splat %zero_f : tensor<16x16xf32>
  %first = tile.dot %q_rows, %all, %none {transpose_b} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  %both = tile.dot %q_rows, %some, %first {transpose_b} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  //      CHECK:  store_tile(both, args.out, 16, [&](int32 r) { return args.out.at_if(r < args.past, batch, r); });
  tile.store %both, %out rows(%r) {
    %exists = arith.cmpi slt, %r, %past : i32
    tile.at [%batch, %r] if %exists
  } : tensor<16x16xf32>, !tile.view<f32, 2, 1>
  // CHECK-NEXT:}
  return
}
