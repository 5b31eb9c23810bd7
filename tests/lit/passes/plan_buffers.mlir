// RUN: nsa-opt %s --tile-plan-buffers=limit=100000 | FileCheck %s

// CHECK: func.func @plan() attributes {tile.shared_bytes = 22656 : i64}
func.func @plan() {
  // 16 * 24 * 2 = 768 bytes.
  // CHECK: tile.buffer {tile.shared_offset = 1152 : i64}
  %q = tile.buffer : !tile.buffer<tensor<16x24xbf16>>
  // 32 * 64 * 2 * 3 stages = 12288 bytes.
  // CHECK: tile.buffer {tile.shared_offset = 1920 : i64}
  %k = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 3>
  // 8 * 8 * 2 = 128 bytes.
  // CHECK: tile.buffer {tile.shared_offset = 14208 : i64}
  %small = tile.buffer : !tile.buffer<tensor<8x8xbf16>>
  // 65 * 64 * 2 = 8320 bytes; 14208 + 128 is aligned already.
  // CHECK: tile.buffer {tile.shared_offset = 14336 : i64}
  %v = tile.buffer : !tile.buffer<tensor<65x64xbf16>>
  // Lists come first: 4 * (32 + 4) * 8 = 1152 bytes.
  // CHECK: tile.top_create {tile.shared_offset = 0 : i64}
  %best = tile.top_create : !tile.top<32, 4>
  return
}

// CHECK: func.func @none() attributes {tile.shared_bytes = 0 : i64}
func.func @none() {
  return
}
