// Lists of best columns, parts of what was loaded, shifted columns: one line each.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

//      CHECK:top(const __grid_constant__ Arguments args) {
// CHECK-NEXT:  extern __shared__ __align__(128) unsigned char shared_memory[];
// CHECK-NEXT:  const TopLists<32, 5, kWarps> best(shared_memory);
// CHECK-NEXT:  const SharedTile<bf16, 32, 64> q_tile_shared(shared_memory + 1536);
// CHECK-NEXT:  const SharedTile<bf16, 48, 64> k_tile_shared(shared_memory + 5632);
// CHECK-EMPTY:
// CHECK-NEXT:  top_clear(best);
func.func @top(%q: !tile.view<bf16, 1>, %out: !tile.view<i32, 1>, %n: i32, %row: i32) attributes {tile.warps = 2 : i32} {
  %yes = arith.constant true
  %best = tile.top_create : !tile.top<32, 5>
  %q_tile = tile.load %q rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  %k_tile = tile.load %q rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<48x64xbf16>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.splat %zero : tensor<32x16xf32>
  // CHECK: {{.*}}const auto s = dot_transposed(
  // CHECK-NEXT:      q_tile, rows_of<16>(k_tile_shared, args.row), splat<Fragment<float, 32, 16, kWarps>>(0.0f));
  %s = tile.dot %q_tile, %k_tile, %zeros from %row {transpose_b} : tensor<32x64xbf16>, tensor<48x64xbf16> -> tensor<32x16xf32>
  // CHECK-NEXT:  const auto last = reduce_last(s);
  %last = tile.reduce last %s : tensor<32x16xf32> -> tensor<32xf32>
  // CHECK-NEXT:  const auto moved = shift_columns(s, last);
  %moved = tile.shift %s, %last : tensor<32xf32> -> tensor<32x16xf32>
  // CHECK-NEXT:  top_insert(best, moved, args.n);
  tile.top_insert %moved at %n into %best : tensor<32x16xf32>, !tile.top<32, 5>
  %before = tile.splat %n : tensor<32xi32>
  // CHECK-NEXT:  const auto next = top_next(best, splat<RowVector<int32, 32, kWarps>>(args.n));
  %next = tile.top_next %best after %before : !tile.top<32, 5> -> tensor<32xi32>
  // CHECK-NEXT:  store_rows(next, args.out, [&](int32 r) { return args.out.at(r); });
  tile.store %next, %out rows(%r) {
    tile.at [%r] if %yes
  } : tensor<32xi32>, !tile.view<i32, 1>
  return
}
