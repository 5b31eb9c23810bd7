// RUN: nsa-opt %s --tile-assign-layouts=target=gpu --split-input-file --verify-diagnostics

// What a loop carries is one tile.
func.func @through_loop(%view: !tile.view<f32, 1>, %acc: tensor<32x32xf32>, %ok: i1, %n: i32) attributes {tile.warps = 1 : i32} {
  // expected-error@+2 {{makes a tile that is needed as shared and as accumulator; there is no conversion}}
  // expected-note@+1 {{tile.load needs shared}}
  %first = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } {tile.layout = #tile.layout<shared>} : !tile.view<f32, 1> -> tensor<32x32xf32>
  // expected-note@+1 {{tile.convert_layout needs accumulator}}
  %x = scf.for %i = %n to %n step %n iter_args(%y = %first) -> (tensor<32x32xf32>) : i32 {
    %z = tile.dot %acc, %y, %acc : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    scf.yield %z : tensor<32x32xf32>
  }
  return
}

// -----

func.func @producer(%view: !tile.view<f32, 1>, %s: tensor<32x32xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  // expected-error@+2 {{cannot make a tile of layout shared}}
  // expected-note@+1 {{tile.map needs it}}
  %p = tile.map(%e = %s : tensor<32x32xf32>) at (%row, %column) -> tensor<32x32xf32> attributes {tile.layout = #tile.layout<shared>} {
    tile.yield %e : f32
  }
  return
}

// -----

func.func @vector_columns(%view: !tile.view<f32, 1>, %ok: i1) attributes {tile.warps = 4 : i32} {
  // expected-error@+1 {{has a tile of 12 columns; as column they are multiples of 8}}
  %v = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<12xf32, #tile.column>
  return
}

// -----

// The depth of a product with a transposed left side is the rows of the left side.
func.func @transposed_depth(%a: tensor<24x16xbf16>, %b: tensor<24x16xbf16>, %acc: tensor<16x16xf32>) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{sums over 24 and makes 16 columns; with elements of 'bf16' both are multiples of 16}}
  %y = tile.dot %a, %b, %acc {transpose_a} : tensor<24x16xbf16>, tensor<24x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// expected-error@+1 {{has no 'tile.warps', by which a GPU splits the rows of a tile}}
func.func @no_warps() { return }

// -----

// An operation that works on fragments.
func.func @rows(%x: f32, %first: tensor<32xf32>) attributes {tile.warps = 4 : i32} {
  // expected-error@+1 {{has a tile of 32 rows, but 4 warps of 16 rows split multiples of 64}}
  %y = tile.splat %x : tensor<32x32xf32>
  %z = tile.shift %y, %first : tensor<32xf32> -> tensor<32x32xf32>
  return
}

// -----

func.func @striped_columns(%x: f32) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{has a tile of 12 columns; as striped they are multiples of 8}}
  %y = tile.splat %x : tensor<2x12xf32>
  return
}

// -----

func.func @columns(%x: f32) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{has a tile of 12 columns; as accumulator they are multiples of 8}}
  %y = tile.splat %x : tensor<32x12xf32>
  return
}

// -----

func.func @shared_rows(%view: !tile.view<f32, 1>, %a: tensor<16x12xf32>, %acc: tensor<16x16xf32>, %ok: i1) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{has a tile of 12 rows; in shared memory they are multiples of 8}}
  %b = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<12x16xf32>
  %y = tile.dot %a, %b, %acc : tensor<16x12xf32>, tensor<12x16xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @depth(%a: tensor<16x24xbf16>, %b: tensor<16x24xbf16>, %acc: tensor<16x16xf32>) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{sums over 24 and makes 16 columns; with elements of 'bf16' both are multiples of 16}}
  %y = tile.dot %a, %b, %acc {transpose_b} : tensor<16x24xbf16>, tensor<16x24xbf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @mixed(%a: tensor<16x16xf32>, %b: tensor<16x16xbf16>, %acc: tensor<16x16xf32>) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{multiplies 'f32' by 'bf16'; on a GPU both sides have one type}}
  %y = tile.dot %a, %b, %acc : tensor<16x16xf32>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// Elementwise operations are fused before, so they have no layouts.
func.func @without_interface(%a: tensor<16x16xf32>) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{'arith.negf' op has tiles, but does not say in which layouts (LayoutOpInterface)}}
  %b = arith.negf %a : tensor<16x16xf32>
  return
}

// -----

func.func @made_without_interface(%status: !tile.view<i32, 1>) attributes {tile.warps = 1 : i32} {
  // expected-error@+1 {{'tile.iota' op has tiles, but does not say in which layouts (LayoutOpInterface)}}
  %b = tile.iota 0 : tensor<16xi32>
  return
}
