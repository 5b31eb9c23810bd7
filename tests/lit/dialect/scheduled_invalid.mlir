// Every rule of a scheduled program, and what it says.
// RUN: nsa-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{a buffer holds tiles of rank 2 of f32, f16, bf16 or i32, not 'tensor<16xbf16>'}}
func.func @buffer_rank(%b: !tile.buffer<tensor<16xbf16>>) { return }

// -----

// expected-error@+1 {{a buffer holds tiles of rank 2 of f32, f16, bf16 or i32, not 'tensor<16x16xi1>'}}
func.func @buffer_element(%b: !tile.buffer<tensor<16x16xi1>>) { return }

// -----

// expected-error@+1 {{a buffer has at least one stage, not 0}}
func.func @buffer_stages(%b: !tile.buffer<tensor<16x16xbf16>, 0>) { return }

// -----

func.func @copy_stage(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  // expected-error@+1 {{names no stage of '!tile.buffer<tensor<16x16xbf16>, 2>'; a stage is named where a buffer has more than one}}
  tile.copy %x to %ring rows(%r) {
    tile.at [%n] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  return
}

// -----

func.func @copy_element(%x: !tile.view<f32, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %n: i32, %ok: i1) {
  // expected-error@+1 {{moves elements of 'f32' to or from a tile of 'bf16'}}
  tile.copy %x to %b rows(%r) {
    tile.at [%n] if %ok
  } : !tile.view<f32, 1>, !tile.buffer<tensor<16x16xbf16>>
  return
}

// -----

func.func @copy_columns(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  // expected-error@+1 {{columns(17) is not in 1 .. 16, the tile's columns}}
  tile.copy %x to %b rows(%r) {
    tile.at [%n] if %ok
  } columns(17) : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  return
}

// -----

func.func @copy_region(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  tile.copy %x to %b rows(%r) {
    // expected-error@+1 {{has 2 coordinates for a view of 1}}
    tile.at [%n, %n] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  return
}

// -----

func.func @read_stage(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  // expected-error@+1 {{names a stage of '!tile.buffer<tensor<16x16xbf16>>'; a stage is named where a buffer has more than one}}
  %t = tile.read %b[%n] : !tile.buffer<tensor<16x16xbf16>>
  return
}

// -----

func.func @wait() {
  // expected-error@+1 {{attribute 'newest' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  tile.wait_copies -1
  return
}

// -----

func.func @fetch_stages(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  // expected-error@+1 {{attribute 'stages' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 2}}
  %f = tile.fetch %n to %n step %n stages(1) : i32 (%i, %stage) {
  }
  return
}

// -----

func.func @fetch_content(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1, %y: !tile.view<i32, 1>) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
    // expected-error@+1 {{cannot stand in a tile.fetch: only copies and scalar code without side effects can}}
    tile.report %ok, %n, %i to %y : !tile.view<i32, 1>
  }
  return
}

// -----

func.func @fetch_tile(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
    // expected-error@+1 {{cannot stand in a tile.fetch: only copies and scalar code without side effects can}}
    %t = tile.splat %i : tensor<16xi32>
  }
  return
}

// -----

func.func @fetch_depth(%x: !tile.view<bf16, 1>, %ring: !tile.buffer<tensor<16x16xbf16>, 3>, %n: i32, %ok: i1) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
    // expected-error@+1 {{fills a buffer of 3 stages in a tile.fetch of 2}}
    tile.copy %x to %ring[%stage] rows(%r) {
      tile.at [%n] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 3>
  }
  return
}

// -----

func.func @fetch_stage(%x: !tile.view<bf16, 1>, %b: !tile.buffer<tensor<16x16xbf16>>, %ring: !tile.buffer<tensor<16x16xbf16>, 2>, %n: i32, %ok: i1) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
    // expected-error@+1 {{fills another stage than its tile.fetch}}
    tile.copy %x to %ring[%n] rows(%r) {
      tile.at [%n] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  return
}

// -----

func.func @ahead_fetch(%f: !tile.fetch, %n: i32) {
  scf.for %key = %n to %n step %n : i32 {
    // expected-error@+1 {{starts the copies of a tile.fetch}}
    %stage = tile.fetch_ahead %f at %key : i32
  }
  return
}

// -----

func.func @ahead_outside(%n: i32) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
  }
  // expected-error@+1 {{stands in the body of its loop and has the loop's induction variable}}
  %s = tile.fetch_ahead %f at %n : i32
  return
}

// -----

func.func @ahead_index(%n: i32) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
  }
  scf.for %key = %n to %n step %n : i32 {
    // expected-error@+1 {{stands in the body of its loop and has the loop's induction variable}}
    %s = tile.fetch_ahead %f at %n : i32
  }
  return
}

// -----

func.func @ahead_bounds(%n: i32, %m: i32) {
  %f = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
  }
  scf.for %key = %n to %m step %n : i32 {
    // expected-error@+1 {{stands in a loop with other bounds than its tile.fetch}}
    %s = tile.fetch_ahead %f at %key : i32
  }
  return
}

// -----

func.func @named_tile(%n: i32) {
  // expected-error@+1 {{'tile.named' belongs on an operation whose only result is a scalar}}
  %t = tile.splat %n {tile.named} : tensor<16xi32>
  return
}

// -----

func.func @named_value(%n: i32) {
  // expected-error@+1 {{'tile.named' has no value, not true}}
  %t = arith.addi %n, %n {tile.named = true} : i32
  return
}

// -----

func.func @fetch_arguments(%n: i32) {
  // expected-error@+1 {{has a region of two arguments, the induction variable and the i32 stage}}
  %f = "tile.fetch"(%n, %n, %n) <{stages = 2 : i64}> ({
  ^bb0(%i: i32):
  }) : (i32, i32, i32) -> !tile.fetch
  return
}

// -----

func.func @write_stage(%x: tensor<16x16xf32>, %ring: !tile.buffer<tensor<16x16xf32>, 2>) {
  // expected-error@+1 {{names no stage of '!tile.buffer<tensor<16x16xf32>, 2>'}}
  tile.write %x to %ring : !tile.buffer<tensor<16x16xf32>, 2>
  return
}

// -----

func.func @partials_kind(%x: tensor<16x16xf32>, %b: !tile.buffer<tensor<8x16xf32>>) {
  // expected-error@+1 {{has no partial results of the last column}}
  tile.write_partials last %x to %b : tensor<16x16xf32>, !tile.buffer<tensor<8x16xf32>>
  return
}

// -----

func.func @partials_columns(%x: tensor<16x16xf32>, %b: !tile.buffer<tensor<8x32xf32>>) {
  // expected-error@+1 {{has '!tile.buffer<tensor<8x32xf32>>' for partial results of 16 columns of f32}}
  tile.write_partials add %x to %b : tensor<16x16xf32>, !tile.buffer<tensor<8x32xf32>>
  return
}

// -----

func.func @partials_stage(%x: tensor<16x16xf32>, %b: !tile.buffer<tensor<8x16xf32>, 2>) {
  // expected-error@+1 {{names no stage of '!tile.buffer<tensor<8x16xf32>, 2>'}}
  tile.write_partials add %x to %b : tensor<16x16xf32>, !tile.buffer<tensor<8x16xf32>, 2>
  return
}

// -----

func.func @partials_of_rows(%b: !tile.buffer<tensor<8x16xf32>>) {
  // expected-error@+1 {{has '!tile.buffer<tensor<8x16xf32>>' for partial results of 16 rows of f32}}
  %x = tile.read_partials add %b : !tile.buffer<tensor<8x16xf32>> -> tensor<16xf32>
  return
}

// -----

func.func @striped_partials(%f: f32, %b: !tile.buffer<tensor<8x4xf32>>) {
  %x = tile.splat %f {tile.layout = #tile.layout<striped>} : tensor<9x64xf32>
  // expected-error@+1 {{has '!tile.buffer<tensor<8x4xf32>>' for partial results of 9 rows of f32}}
  tile.write_partials add %x to %b : tensor<9x64xf32>, !tile.buffer<tensor<8x4xf32>>
  return
}

// -----

func.func @sum_rows(%p: tensor<32x16xbf16>) {
  // expected-error@+1 {{gives 16 values for 32 rows}}
  %y = tile.sum_operand %p : tensor<32x16xbf16> -> tensor<16xf32>
  return
}

// -----

func.func @sum_floats(%p: tensor<32x16xf32>) {
  // expected-error@+1 {{must be tile of rank 2 of bf16 or f16}}
  %y = tile.sum_operand %p : tensor<32x16xf32> -> tensor<32xf32>
  return
}

// -----

func.func @sum_columns(%p: tensor<32x24xbf16>) {
  // expected-error@+1 {{sums 24 columns; tensor cores sum multiples of 16}}
  %y = tile.sum_operand %p : tensor<32x24xbf16> -> tensor<32xf32>
  return
}
