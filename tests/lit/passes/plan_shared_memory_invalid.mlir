// RUN: nsa-opt %s --tile-plan-shared-memory=limit=8192 --split-input-file --verify-diagnostics

// expected-error@+1 {{needs 12288 bytes of shared memory, but a block may use 8192: smaller tiles or fewer stages fit}}
func.func @too_much(%view: !tile.view<bf16, 1>, %ok: i1) {
  // expected-note@+1 {{one of its tiles, 'tensor<32x64xbf16>'}}
  %k = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<shared>, tile.ring = 3 : i32} : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  return
}

// -----

func.func @row_granule(%view: !tile.view<bf16, 1>, %ok: i1) {
  // expected-error@+1 {{has rows of 24 bytes; in shared memory they are multiples of 16}}
  %k = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<16x12xbf16>
  return
}
