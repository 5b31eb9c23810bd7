// Every rule of the verifiers, and what it says.
// RUN: nsa-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{a view's elements are f32, f16, bf16, i32 or gradients, not 'f64'}}
func.func @view_element(%view: !tile.view<f64, 2>) { return }

// -----

// expected-error@+2 {{a gradient is f32, f16 or bf16, not 'i32'}}
// expected-error@+1 {{failed to parse Tile_ViewType parameter 'elementType'}}
func.func @gradient_element(%view: !tile.view<!tile.gradient<i32>, 2>) { return }

// -----

// expected-error@+1 {{a view of gradients has no pages}}
func.func @gradient_pages(%view: !tile.view<!tile.gradient<bf16>, 2, 64>) { return }

// -----

func.func @gradient_load(%view: !tile.view<!tile.gradient<bf16>, 1>) {
  %yes = arith.constant true
  // expected-error@+1 {{reads gradients, which a program only stores}}
  %tile = tile.load %view rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<!tile.gradient<bf16>, 1> -> tensor<16x8xf32>
  return
}

// -----

func.func @gradient_scalar(%view: !tile.view<!tile.gradient<bf16>, 1>, %at: i32) {
  // expected-error@+1 {{result #0 must be i1, i32, i64, f32, f64, bf16 or f16}}
  %element = tile.load_scalar %view[%at] : !tile.view<!tile.gradient<bf16>, 1>
  return
}

// -----

func.func @gradient_store(%view: !tile.view<!tile.gradient<bf16>, 1>, %tile: tensor<16x8xbf16>) {
  %yes = arith.constant true
  // expected-error@+1 {{moves elements of 'f32' to or from a tile of 'bf16'}}
  tile.store %tile, %view rows(%r) {
    tile.at [%r] if %yes
  } : tensor<16x8xbf16>, !tile.view<!tile.gradient<bf16>, 1>
  return
}

// -----

// expected-error@+1 {{a view has 1 to 4 coordinates, not 0}}
func.func @view_rank(%view: !tile.view<f32, 0>) { return }

// -----

// expected-error@+1 {{a page has 1 to 2147483647 rows (0: no pages), not -1}}
func.func @view_page_rows(%view: !tile.view<f32, 3, -1>) { return }

// -----

// expected-error@+1 {{a page has 1 to 2147483647 rows (0: no pages), not 2147483648}}
func.func @view_long_pages(%view: !tile.view<f32, 3, 2147483648>) { return }

// -----

// expected-error@+1 {{a view of pages has at least 2 coordinates, the sequence and the row, not 1}}
func.func @view_page_rank(%view: !tile.view<f32, 1, 64>) { return }

// -----

func.func @view_choice(%first: i1, %a: !tile.view<f32, 2, 64>, %b: !tile.view<f32, 2, 32>) {
  // expected-note@-1 {{prior use here}}
  // expected-error@+1 {{use of value '%b' expects different type than prior uses: '!tile.view<f32, 2, 64>' vs '!tile.view<f32, 2, 32>'}}
  %either = arith.select %first, %a, %b : !tile.view<f32, 2, 64>
  return
}

// -----

func.func @report_pages(%bad: i1, %code: i32, %status: !tile.view<i32, 2, 8>) {
  // expected-error@+1 {{must be view of i32 without pages}}
  tile.report %bad, %code, %code to %status : !tile.view<i32, 2, 8>
  return
}

// -----

func.func @load_scalar_rank(%view: !tile.view<i32, 2>, %i: i32) {
  // expected-error@+1 {{has 1 coordinates for a view of 2}}
  %x = tile.load_scalar %view[%i] : !tile.view<i32, 2>
  return
}

// -----

func.func @load_scalar_type(%view: !tile.view<i32, 1>, %i: i32) {
  // expected-error@+1 {{gives 'f32' from a view of 'i32'}}
  %x = "tile.load_scalar"(%view, %i) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tile.view<i32, 1>, i32) -> f32
  return
}

// -----

func.func @load_scalar_syntax(%view: !tile.view<i32, 1>, %i: i32) {
  // expected-error@+1 {{expected a !tile.view}}
  %x = tile.load_scalar %view[%i] : i32
  return
}

// -----

func.func @report_status(%bad: i1, %code: i32, %status: !tile.view<f32, 1>) {
  // expected-error@+1 {{must be view of i32}}
  tile.report %bad, %code, %code to %status : !tile.view<f32, 1>
  return
}

// -----

func.func @load_element(%view: !tile.view<bf16, 1>, %ok: i1) {
  // expected-error@+1 {{moves elements of 'bf16' to or from a tile of 'f32'}}
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1> -> tensor<16x16xf32>
  return
}

// -----

func.func @load_columns(%view: !tile.view<f32, 1>, %ok: i1) {
  // expected-error@+1 {{columns(17) is not in 1 .. 16, the tile's columns}}
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } columns(17) : !tile.view<f32, 1> -> tensor<16x16xf32>
  return
}

// -----

func.func @load_chunk_of_columns(%view: !tile.view<f32, 1>, %ok: i1, %i: i32) {
  // expected-error@+1 {{has both columns and a chunk, which says them of the row}}
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } columns(8) chunk(%i of %i) : !tile.view<f32, 1> -> tensor<16x16xf32>
  return
}

// -----

func.func @load_chunk_alone(%view: !tile.view<f32, 1>, %ok: i1, %i: i32) {
  // expected-error@+1 {{has the number of a chunk without the columns of a row, or these without it}}
  %x = "tile.load"(%view, %i) <{operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%r: i32):
    tile.at [%r] if %ok
  }) : (!tile.view<f32, 1>, i32) -> tensor<16x16xf32>
  return
}

// -----

func.func @load_dynamic(%view: !tile.view<f32, 1>, %ok: i1) {
  // expected-error@+1 {{must be tile (static tensor of rank 1 or 2)}}
  %x = tile.load %view rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<?x16xf32>
  return
}

// -----

func.func @load_coordinates(%view: !tile.view<f32, 2>, %ok: i1) {
  %x = tile.load %view rows(%r) {
    // expected-error@+1 {{has 1 coordinates for a view of 2}}
    tile.at [%r] if %ok
  } : !tile.view<f32, 2> -> tensor<16x16xf32>
  return
}

// -----

func.func @load_argument(%view: !tile.view<f32, 1>, %ok: i1) {
  // expected-error@+1 {{has a region of one argument, the i32 number of the row}}
  %x = "tile.load"(%view) <{operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%r: i32, %more: i32):
    tile.at [%r] if %ok
  }) : (!tile.view<f32, 1>) -> tensor<16x16xf32>
  return
}

// -----

func.func @load_side_effect(%view: !tile.view<f32, 1>, %status: !tile.view<i32, 1>, %ok: i1) {
  %x = tile.load %view rows(%r) {
    // expected-error@+1 {{cannot stand in the region of a row: only scalar code without side effects can}}
    tile.report %ok, %r, %r to %status : !tile.view<i32, 1>
    tile.at [%r] if %ok
  } : !tile.view<f32, 1> -> tensor<16x16xf32>
  return
}

// -----

func.func @store_element(%view: !tile.view<f16, 1>, %tile: tensor<16xf32>, %ok: i1) {
  // expected-error@+1 {{moves elements of 'f16' to or from a tile of 'f32'}}
  tile.store %tile, %view rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xf32>, !tile.view<f16, 1>
  return
}

// -----

func.func @store_columns_of_row(%view: !tile.view<f32, 1>, %tile: tensor<16xf32>, %ok: i1) {
  // expected-error@+1 {{columns(2) is not in 1 .. 1, the tile's columns}}
  tile.store %tile, %view rows(%r) {
    tile.at [%r] if %ok
  } columns(2) : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @store_columns_of_chunk(%view: !tile.view<f32, 1>, %tile: tensor<16x16xf32>, %ok: i1, %i: i32) {
  // expected-error@+1 {{has both columns and a chunk, which says them of the row}}
  tile.store %tile, %view rows(%r) {
    tile.at [%r] if %ok
  } columns(8) chunk(%i of %i) : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @store_places_of_columns(%view: !tile.view<f32, 1>, %tile: tensor<16x16xf32>, %places: tensor<16xi32, #tile.column>, %ok: i1) {
  // expected-error@+1 {{has places 'tensor<16xi32, #tile.column>' for the rows of 'tensor<16x16xf32>'; each row has one}}
  tile.store %tile, %view rows(%r, %place of %places : tensor<16xi32, #tile.column>) {
    tile.at [%place] if %ok
  } : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @store_places_of_few_rows(%view: !tile.view<f32, 1>, %tile: tensor<32x16xf32>, %places: tensor<16xi32>, %ok: i1) {
  // expected-error@+1 {{has places 'tensor<16xi32>' for the rows of 'tensor<32x16xf32>'; each row has one}}
  tile.store %tile, %view rows(%r, %place of %places : tensor<16xi32>) {
    tile.at [%place] if %ok
  } : tensor<32x16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @store_places_count(%view: !tile.view<f32, 1>, %tile: tensor<16xf32>, %places: tensor<32xi32>, %ok: i1) {
  // expected-error@+1 {{has places 'tensor<32xi32>' for the rows of 'tensor<16xf32>'; each row has one}}
  tile.store %tile, %view rows(%r, %place of %places : tensor<32xi32>) {
    tile.at [%place] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @store_places_type(%view: !tile.view<f32, 1>, %tile: tensor<16xf32>, %places: tensor<16xf32>, %ok: i1) {
  // expected-error@+1 {{must be tile of rank 1 of i32}}
  tile.store %tile, %view rows(%r, %place of %places : tensor<16xf32>) {
    tile.at [%place] if %ok
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

func.func @store_places_unseen(%view: !tile.view<f32, 1>, %tile: tensor<16xf32>, %places: tensor<16xi32>, %ok: i1) {
  // expected-error@+1 {{has a region of two arguments, the i32 number of the row and its i32 place}}
  "tile.store"(%tile, %view, %places) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}> ({
  ^bb0(%r: i32):
    tile.at [%r] if %ok
  }) : (tensor<16xf32>, !tile.view<f32, 1>, tensor<16xi32>) -> ()
  return
}

// -----

func.func @at_alone(%ok: i1) {
  // expected-error@+1 {{expects parent op to be one of 'tile.load, tile.store, tile.copy'}}
  tile.at [] if %ok
}

// -----

func.func @iota_dimension() {
  // expected-error@+1 {{has dimension 1 of a tile of rank 1}}
  %x = tile.iota 1 : tensor<16xi32>
  return
}

// -----

func.func @splat_type(%x: i32) {
  // expected-error@+1 {{scalar has the tile's element type}}
  %tile = "tile.splat"(%x) : (i32) -> tensor<16xf32>
  return
}

// -----

func.func @broadcast_rows(%row: tensor<16xf32>) {
  // expected-error@+1 {{has 16 values for 32 rows}}
  %wide = tile.broadcast %row : tensor<16xf32> -> tensor<32x16xf32>
  return
}

// -----

func.func @broadcast_type(%row: tensor<16xf32>) {
  // expected-error@+1 {{makes 'f16' from 'f32'}}
  %wide = tile.broadcast %row : tensor<16xf32> -> tensor<16x16xf16>
  return
}

// -----

func.func @cast_shape(%x: tensor<16x16xf32>) {
  // expected-error@+1 {{changes the shape: 'tensor<16x16xf32>' to 'tensor<16x32xf16>'}}
  %y = tile.cast %x : tensor<16x16xf32> -> tensor<16x32xf16>
  return
}

// -----

func.func @dot_depth(%a: tensor<16x32xf32>, %b: tensor<16x16xf32>, %acc: tensor<16x16xf32>) {
  // expected-error@+1 {{sums over 32 columns of a, but over 16 of b}}
  %c = tile.dot %a, %b, %acc : tensor<16x32xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_depth_transposed(%a: tensor<16x32xf32>, %b: tensor<32x16xf32>, %acc: tensor<16x16xf32>) {
  // expected-error@+1 {{sums over 32 columns of a, but over 16 of b (transposed)}}
  %c = tile.dot %a, %b, %acc {transpose_b} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_result(%a: tensor<16x32xf32>, %b: tensor<32x16xf32>, %acc: tensor<16x32xf32>) {
  // expected-error@+1 {{makes 16x16, but its accumulator is 'tensor<16x32xf32>'}}
  %c = tile.dot %a, %b, %acc : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x32xf32>
  return
}

// -----

func.func @reduce_rows(%x: tensor<16x32xf32>) {
  // expected-error@+1 {{gives 32 values for 16 rows}}
  %y = tile.reduce max %x : tensor<16x32xf32> -> tensor<32xf32>
  return
}

// -----

func.func @map_shape(%x: tensor<32xf32>) {
  // expected-error@+1 {{has an input 'tensor<32xf32>' that is neither of the result's shape nor one value per row or column of 'tensor<16x32xf32>'}}
  %y = tile.map(%e = %x : tensor<32xf32>) at (%i, %j) -> tensor<16x32xf32> {
    tile.yield %e : f32
  }
  return
}

// -----

func.func @map_arguments(%x: tensor<16xf32>) {
  // expected-error@+1 {{has a region of one argument per input and two more, the i32 row and column}}
  %y = "tile.map"(%x) ({
  ^bb0(%e: f32, %i: i32):
    tile.yield %e : f32
  }) : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func @map_yield(%x: tensor<16xf32>) {
  // expected-error@+1 {{yields 'f32' for a result of 'tensor<16xf16>'}}
  %y = tile.map(%e = %x : tensor<16xf32>) at (%i, %j) -> tensor<16xf16> {
    tile.yield %e : f32
  }
  return
}

// -----

func.func @map_captures(%x: tensor<16xf32>, %f: f32) {
  %y = tile.map(%e = %x : tensor<16xf32>) at (%i, %j) -> tensor<16xf32> {
    // expected-error@+1 {{use of undeclared SSA value name}}
    %z = arith.addf %e, %f : f32
    tile.yield %z : f32
  }
  return
}

// -----

func.func @map_tile(%x: tensor<16xf32>) {
  %y = tile.map(%e = %x : tensor<16xf32>) at (%i, %j) -> tensor<16xf32> {
    // expected-error@+1 {{cannot stand in a map: only scalar code without side effects can}}
    %z = tile.iota 0 : tensor<16xi32>
    tile.yield %e : f32
  }
  return
}

// -----

// expected-error@+1 {{'tile.warps' is an i32 of at least 1, not 0 : i32}}
func.func @warps() attributes {tile.warps = 0 : i32} { return }

// -----

// expected-error@+1 {{'tile.stages' belongs on an scf.for}}
func.func @stages() attributes {tile.stages = 2 : i32} { return }

// -----

// expected-error@+1 {{'tile.shared_bytes' is an i64 of at least 0, not 16 : i32}}
func.func @shared_bytes() attributes {tile.shared_bytes = 16 : i32} { return }

// -----

func.func @where_alone(%c: i1, %a: tensor<16x32xbf16>, %b: tensor<32x16xbf16>, %acc: tensor<16x16xf32>) {
  // expected-error@+1 {{says where zero annihilates, but not that it does}}
  %r = tile.dot %a, %b, %acc where %c : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// expected-error@+1 {{'tile.stay_in_shared' belongs on a tile.load}}
func.func @stay_in_shared() attributes {tile.stay_in_shared = true} { return }

// -----

func.func @stay_in_shared_type(%x: !tile.view<bf16, 1>, %ok: i1) {
  // expected-error@+1 {{'tile.stay_in_shared' is an i1, not 1 : i32}}
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %ok
  } {tile.stay_in_shared = 1 : i32} : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  return
}

// -----

// expected-error@+1 {{'tile.swizzle' is not an attribute of the tile dialect}}
func.func @unknown_attribute() attributes {tile.swizzle} { return }

// -----

func.func @layout_owner(%a: i32) {
  // expected-error@+1 {{'tile.layout' belongs on an operation whose only result is a tile}}
  %b = arith.addi %a, %a {tile.layout = #tile.layout<row>} : i32
  return
}

// -----

func.func @layout_kind(%a: f32) {
  // expected-error@+1 {{'tile.layout' is a #tile.layout<..>, not 1 : i32}}
  %b = tile.splat %a {tile.layout = 1 : i32} : tensor<16xf32>
  return
}
