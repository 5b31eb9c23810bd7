// RUN: nsa-opt %s --tile-insert-copies --split-input-file --verify-diagnostics

func.func @one_value_per_row(%view: !tile.view<bf16, 1>, %ok: i1) {
  // expected-error@+1 {{cannot be in shared memory: a buffer holds tiles of rank 2 of f32, f16, bf16 or i32, not 'tensor<16xbf16>'}}
  %a = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 1> -> tensor<16xbf16>
  return
}

// -----

func.func @flags(%x: tensor<16x16xi1>) {
  // expected-error@+1 {{cannot be in shared memory: a buffer holds tiles of rank 2 of f32, f16, bf16 or i32, not 'tensor<16x16xi1>'}}
  %y = tile.convert_layout %x {tile.layout = #tile.layout<shared>} : tensor<16x16xi1>
  return
}

// -----

// expected-error@+1 {{has no 'tile.warps', by which a GPU splits the rows of a tile}}
func.func @no_warps(%x: tensor<16x16xf32>) {
  %max = tile.reduce max %x {tile.layout = #tile.layout<column>} : tensor<16x16xf32> -> tensor<16xf32, #tile.column>
  return
}
