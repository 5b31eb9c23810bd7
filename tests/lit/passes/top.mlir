// Lists have a place in shared memory and no layout; what is offered to them and read from them lies as other tiles do.
// RUN: nsa-opt %s --tile-assign-layouts=target=gpu --tile-insert-copies --tile-plan-buffers=limit=100000 | FileCheck %s
// RUN: nsa-opt %s --tile-assign-layouts=target=cpu | FileCheck %s --check-prefix=CPU
// RUN: not nsa-opt %s --tile-assign-layouts=target=gpu --tile-insert-copies --tile-plan-buffers=limit=10000 2>&1 | FileCheck %s --check-prefix=LIMIT

// 8 * 5 * (32 + 4) = 1440 bytes, then 64 * 32 * 2.
// LIMIT: error: needs 10752 bytes of shared memory, but a block may use 10000
// LIMIT: note: a tile of 1440 bytes
// CHECK: tile.shared_bytes = 10752 : i64
func.func @top(%q: !tile.view<bf16, 1>, %out: !tile.view<i32, 1>, %n: i32, %row: i32) attributes {tile.warps = 2 : i32} {
  %yes = arith.constant true
  // CHECK: tile.buffer {tile.shared_offset = 1536 : i64} : !tile.buffer<tensor<32x64xbf16>>
  // CHECK: tile.buffer {tile.shared_offset = 5632 : i64} : !tile.buffer<tensor<40x64xbf16>>
  // CHECK: tile.top_create {tile.shared_offset = 0 : i64}
  // CPU: tile.top_create :
  %best = tile.top_create : !tile.top<32, 5>
  // CHECK: tile.layout = #tile.layout<operand_a>
  // CPU: tile.layout = #tile.layout<lanes>
  %q_tile = tile.load %q rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  // CHECK: tile.layout = #tile.layout<shared>
  // CPU: tile.layout = #tile.layout<row_major>
  %k_tile = tile.load %q rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<40x64xbf16>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.splat %zero : tensor<32x16xf32>
  %s = tile.dot %q_tile, %k_tile, %zeros from %row {transpose_b} : tensor<32x64xbf16>, tensor<40x64xbf16> -> tensor<32x16xf32>
  // CHECK: tile.reduce last %{{.*}} {tile.layout = #tile.layout<row>}
  // CPU: tile.reduce last %{{.*}} {tile.layout = #tile.layout<lanes>}
  %last = tile.reduce last %s : tensor<32x16xf32> -> tensor<32xf32>
  // CHECK: tile.shift %{{.*}} {tile.layout = #tile.layout<accumulator>}
  // CPU: tile.shift %{{.*}} {tile.layout = #tile.layout<lanes>}
  %moved = tile.shift %s, %last : tensor<32xf32> -> tensor<32x16xf32>
  tile.top_insert %moved at %n into %best : tensor<32x16xf32>, !tile.top<32, 5>
  // CHECK: tile.splat {{.*}} {tile.layout = #tile.layout<row>}
  %before = tile.splat %n : tensor<32xi32>
  // CHECK: tile.top_next %{{.*}} {tile.layout = #tile.layout<row>}
  // CPU: tile.top_next %{{.*}} {tile.layout = #tile.layout<lanes>}
  %next = tile.top_next %best after %before : !tile.top<32, 5> -> tensor<32xi32>
  tile.store %next, %out rows(%r) {
    tile.at [%r] if %yes
  } : tensor<32xi32>, !tile.view<i32, 1>
  return
}
