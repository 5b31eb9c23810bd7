// RUN: nsa-opt %s --tile-plan-buffers=limit=8192 --split-input-file --verify-diagnostics

// expected-error@+1 {{needs 12288 bytes of shared memory, but a block may use 8192: smaller tiles or fewer stages fit}}
func.func @too_much() {
  // expected-note@+1 {{a tile of 12288 bytes}}
  %k = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 3>
  return
}

// -----

func.func @row_granule() {
  // expected-error@+1 {{has rows of 24 bytes; in shared memory they are multiples of 16}}
  %k = tile.buffer : !tile.buffer<tensor<16x12xbf16>>
  return
}
