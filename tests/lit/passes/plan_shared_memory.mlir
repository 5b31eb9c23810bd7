// RUN: nsa-opt %s --tile-plan-shared-memory=limit=100000 | FileCheck %s

// CHECK: func.func @plan({{.*}}) attributes {tile.shared_bytes = 21504 : i64}
func.func @plan(%view: !tile.view<bf16, 1>, %ok: i1, %n: i32) {
  // Passes through shared memory: 16 * 24 * 2 = 768 bytes.
  // CHECK: tile.layout = #tile.layout<operand_a>, tile.shared_offset = 0 : i64
  %q = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<operand_a>} : !tile.view<bf16, 1> -> tensor<16x24xbf16>
  scf.for %key = %n to %n step %n : i32 {
    // 32 * 64 * 2 * 3 stages = 12288 bytes.
    // CHECK: tile.layout = #tile.layout<shared>, tile.ring = 3 : i32, tile.shared_offset = 768 : i64
    %k = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<shared>, tile.ring = 3 : i32} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    // 8 * 8 * 2 = 128 bytes.
    // CHECK: tile.shared_offset = 13056 : i64
    %small = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<8x8xbf16>
    // 65 * 64 * 2 = 8320 bytes; 13056 + 128 is aligned already.
    // CHECK: tile.shared_offset = 13184 : i64
    %v = tile.load %view rows(%r) {
      tile.at [%key] if %ok
    } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<65x64xbf16>
  }
  // Registers take no place.
  // CHECK: tile.layout = #tile.layout<row>}
  %row = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<row>} : !tile.view<bf16, 1> -> tensor<16xbf16>
  return
}
