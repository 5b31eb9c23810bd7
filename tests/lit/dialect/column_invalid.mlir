// Every rule for vectors with one value per column and for transposed left sides, and what it says.
// RUN: nsa-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{#tile.column marks a tile of rank 1, not of rank 2}}
func.func @column_rank(%x: tensor<16x16xf32, #tile.column>) { return }

// -----

func.func @mixed(%x: tensor<16xf32, #tile.column>, %y: tensor<16xf32>) {
  // expected-note@-1 {{prior use here}}
  // expected-error@+1 {{use of value '%y' expects different type than prior uses: 'tensor<16xf32, #tile.column>' vs 'tensor<16xf32>'}}
  %z = arith.addf %x, %y : tensor<16xf32, #tile.column>
  return
}

// -----

func.func @broadcast(%x: tensor<32xf32, #tile.column>) {
  // expected-error@+1 {{has 32 values for 16 columns}}
  %y = tile.broadcast %x : tensor<32xf32, #tile.column> -> tensor<32x16xf32>
  return
}

// -----

func.func @reduce(%x: tensor<32x16xf32>) {
  // expected-error@+1 {{gives 32 values for 16 columns}}
  %y = tile.reduce add %x : tensor<32x16xf32> -> tensor<32xf32, #tile.column>
  return
}

// -----

func.func @last_row(%x: tensor<16x16xf32>) {
  // expected-error@+1 {{keeps the last column, which has one value per row}}
  %y = tile.reduce last %x : tensor<16x16xf32> -> tensor<16xf32, #tile.column>
  return
}

// -----

func.func @cast(%x: tensor<16xf32, #tile.column>) {
  // expected-error@+1 {{changes the shape: 'tensor<16xf32, #tile.column>' to 'tensor<16xbf16>'}}
  %y = tile.cast %x : tensor<16xf32, #tile.column> -> tensor<16xbf16>
  return
}

// -----

func.func @map_to_row(%x: tensor<16xf32, #tile.column>) {
  // expected-error@+1 {{has an input 'tensor<16xf32, #tile.column>' that is neither of the result's shape nor one value per row or column of 'tensor<16xf32>'}}
  %y = tile.map(%e = %x : tensor<16xf32, #tile.column>) at (%i, %j) -> tensor<16xf32> {
    tile.yield %e : f32
  }
  return
}

// -----

func.func @places(%x: tensor<16xf32>, %p: tensor<16xi32, #tile.column>, %view: !tile.view<f32, 1>, %ok: i1) {
  // expected-error@+1 {{has places 'tensor<16xi32, #tile.column>' for the rows of 'tensor<16xf32>'}}
  tile.store %x, %view rows(%r, %q of %p : tensor<16xi32, #tile.column>) {
    tile.at [%q] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @shift(%x: tensor<16x16xf32>, %first: tensor<16xf32, #tile.column>) {
  // expected-error@+1 {{operand #1 must be tile of rank 1 of f32, one value per row, but got 'tensor<16xf32, #tile.column>'}}
  %y = tile.shift %x, %first : tensor<16xf32, #tile.column> -> tensor<16x16xf32>
  return
}

// -----

func.func @transposed_depth(%a: tensor<32x64xbf16>, %b: tensor<64x16xbf16>, %acc: tensor<64x16xf32>) {
  // expected-error@+1 {{sums over 32 rows of a, but over 64 of b}}
  %s = tile.dot %a, %b, %acc {transpose_a} : tensor<32x64xbf16>, tensor<64x16xbf16> -> tensor<64x16xf32>
  return
}

// -----

func.func @transposed_rows(%a: tensor<32x64xbf16>, %b: tensor<32x16xbf16>, %acc: tensor<32x16xf32>) {
  // expected-error@+1 {{makes 64x16, but its accumulator is 'tensor<32x16xf32>'}}
  %s = tile.dot %a, %b, %acc {transpose_a} : tensor<32x64xbf16>, tensor<32x16xbf16> -> tensor<32x16xf32>
  return
}
