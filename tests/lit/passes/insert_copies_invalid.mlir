// RUN: nsa-opt %s --tile-insert-copies --verify-diagnostics

func.func @one_value_per_row(%view: !tile.view<bf16, 1>, %ok: i1) {
  // expected-error@+1 {{cannot be in shared memory: a buffer holds tiles of rank 2 of f32, f16, bf16 or i32, not 'tensor<16xbf16>'}}
  %a = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<16xbf16>
  return
}
