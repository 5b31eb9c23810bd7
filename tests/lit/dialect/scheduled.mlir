// Every operation of a scheduled program is printed as it was read.
// RUN: nsa-opt %s | nsa-opt | FileCheck %s

// CHECK-LABEL: func.func @scheduled
func.func @scheduled(%q: !tile.view<bf16, 3>, %k: !tile.view<bf16, 1>, %list: !tile.view<i32, 1>, %n: i32, %step: i32, %ok: i1) {
  // CHECK: %[[Q:.*]] = tile.buffer {tile.shared_offset = 128 : i64} : !tile.buffer<tensor<64x80xbf16>>
  %q_buffer = tile.buffer {tile.shared_offset = 128 : i64} : !tile.buffer<tensor<64x80xbf16>>
  // CHECK: %[[K:.*]] = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 3>
  %k_buffer = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 3>
  // CHECK: tile.copy %{{.*}} to %[[Q]] rows(%[[R:.*]]) {
  // CHECK-NEXT: tile.at [%{{.*}}, %[[R]], %{{.*}}] if %{{.*}}
  // CHECK-NEXT: } columns(72) : !tile.view<bf16, 3>, !tile.buffer<tensor<64x80xbf16>>
  tile.copy %q to %q_buffer rows(%r) {
    tile.at [%n, %r, %n] if %ok
  } columns(72) : !tile.view<bf16, 3>, !tile.buffer<tensor<64x80xbf16>>
  // CHECK: tile.commit_copies
  tile.commit_copies
  // CHECK: %[[FETCH:.*]] = tile.fetch %{{.*}} to %{{.*}} step %{{.*}} stages(3) : i32 (%[[KEY:.*]], %[[STAGE:.*]]) {
  // CHECK-NEXT: %[[PLACE:.*]] = tile.load_scalar %{{.*}}[%[[KEY]]] {tile.named} : !tile.view<i32, 1>
  // CHECK-NEXT: tile.copy %{{.*}} to %[[K]][%[[STAGE]]] rows(%{{.*}}) {
  // CHECK-NEXT: tile.at [%[[PLACE]]] if %{{.*}}
  // CHECK-NEXT: } chunk(%[[KEY]] of %{{.*}}) : !tile.view<bf16, 1>, !tile.buffer<tensor<32x64xbf16>, 3>
  // CHECK-NEXT: }
  %fetch = tile.fetch %n to %n step %step stages(3) : i32 (%key, %stage) {
    %place = tile.load_scalar %list[%key] {tile.named} : !tile.view<i32, 1>
    tile.copy %k to %k_buffer[%stage] rows(%r) {
      tile.at [%place] if %ok
    } chunk(%key of %n) : !tile.view<bf16, 1>, !tile.buffer<tensor<32x64xbf16>, 3>
  }
  // CHECK: tile.wait_copies 2
  tile.wait_copies 2
  // CHECK: tile.barrier
  tile.barrier
  // CHECK: tile.read %[[Q]] {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<64x80xbf16>>
  %q_tile = tile.read %q_buffer {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<64x80xbf16>>
  // CHECK: scf.for %[[I:.*]] =
  scf.for %key = %n to %n step %step : i32 {
    // CHECK-NEXT: %[[NOW:.*]] = tile.fetch_ahead %[[FETCH]] at %[[I]] : i32
    %stage = tile.fetch_ahead %fetch at %key : i32
    // CHECK-NEXT: tile.read %[[K]][%[[NOW]]] : !tile.buffer<tensor<32x64xbf16>, 3>
    %k_tile = tile.read %k_buffer[%stage] : !tile.buffer<tensor<32x64xbf16>, 3>
  }
  return
}

// CHECK-LABEL: func.func @written
func.func @written(%x: tensor<32x16xf32>) -> tensor<16xf32, #tile.column> {
  %buffer = tile.buffer : !tile.buffer<tensor<32x16xf32>>
  %partials = tile.buffer : !tile.buffer<tensor<8x16xf32>>
  // CHECK: tile.write %{{.*}} to %{{.*}} : !tile.buffer<tensor<32x16xf32>>
  tile.write %x to %buffer : !tile.buffer<tensor<32x16xf32>>
  // CHECK: tile.write_partials max %{{.*}} to %[[PARTIALS:.*]] : tensor<32x16xf32>, !tile.buffer<tensor<8x16xf32>>
  tile.write_partials max %x to %partials : tensor<32x16xf32>, !tile.buffer<tensor<8x16xf32>>
  // CHECK: tile.read_partials max %[[PARTIALS]] : !tile.buffer<tensor<8x16xf32>> -> tensor<16xf32, #tile.column>
  %y = tile.read_partials max %partials : !tile.buffer<tensor<8x16xf32>> -> tensor<16xf32, #tile.column>
  return %y : tensor<16xf32, #tile.column>
}

// CHECK-LABEL: func.func @sum_operand
func.func @sum_operand(%p: tensor<32x16xbf16>) -> tensor<32xf32> {
  // CHECK: tile.sum_operand %{{.*}} : tensor<32x16xbf16> -> tensor<32xf32>
  %y = tile.sum_operand %p : tensor<32x16xbf16> -> tensor<32xf32>
  return %y : tensor<32xf32>
}
