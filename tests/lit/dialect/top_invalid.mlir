// Every rule about lists of best columns and what selection needs beside them, and what it says.
// RUN: nsa-opt %s --split-input-file --verify-diagnostics

func.func @slots() {
  // expected-error@+1 {{a list has 1 to 128 slots, not 129}}
  %best = tile.top_create : !tile.top<16, 129>
  return
}

// -----

func.func @no_slots() {
  // expected-error@+1 {{a list has 1 to 128 slots, not 0}}
  %best = tile.top_create : !tile.top<16, 0>
  return
}

// -----

func.func @rows() {
  // expected-error@+1 {{lists are of at least one row, not 0}}
  %best = tile.top_create : !tile.top<0, 4>
  return
}

// -----

func.func @insert_rows(%scores: tensor<32x16xf32>, %first: i32) {
  %best = tile.top_create : !tile.top<16, 4>
  // expected-error@+1 {{has the lists of 16 rows for a tile of 32}}
  tile.top_insert %scores at %first into %best : tensor<32x16xf32>, !tile.top<16, 4>
  return
}

// -----

func.func @next_rows(%after: tensor<8xi32>) {
  %best = tile.top_create : !tile.top<16, 4>
  // expected-error@+1 {{has the lists of 16 rows for a tile of 8}}
  %next = tile.top_next %best after %after : !tile.top<16, 4> -> tensor<8xi32>
  return
}

// -----

func.func @next_types(%after: tensor<16xi32>) {
  %best = tile.top_create : !tile.top<16, 4>
  // expected-error@+1 {{columns before and after are of one type}}
  %next = "tile.top_next"(%best, %after) : (!tile.top<16, 4>, tensor<16xi32>) -> tensor<8xi32>
  return
}

// -----

// A list has one place, which control flow cannot choose.
func.func @chosen(%scores: tensor<16x16xf32>, %first: i32, %which: i1) {
  %a = tile.top_create : !tile.top<16, 4>
  %b = tile.top_create : !tile.top<16, 4>
  %best = arith.select %which, %a, %b : !tile.top<16, 4>
  // expected-error@+1 {{works on lists that tile.top_create made}}
  tile.top_insert %scores at %first into %best : tensor<16x16xf32>, !tile.top<16, 4>
  return
}

// -----

func.func @insert_type(%scores: tensor<16x16xi32>, %first: i32) {
  %best = tile.top_create : !tile.top<16, 4>
  // expected-error@+1 {{must be tile of rank 2 of f32}}
  tile.top_insert %scores at %first into %best : tensor<16x16xi32>, !tile.top<16, 4>
  return
}

// -----

func.func @shift_rows(%x: tensor<16x16xf32>, %first: tensor<32xf32>) {
  // expected-error@+1 {{has 32 values for the first column of 16 rows}}
  %y = tile.shift %x, %first : tensor<32xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @part_rows(%a: tensor<16x32xf32>, %b: tensor<8x32xf32>, %acc: tensor<16x16xf32>, %row: i32) {
  // expected-error@+1 {{makes 16x8, but its accumulator is 'tensor<16x16xf32>'}}
  %c = tile.dot %a, %b, %acc from %row {transpose_b} : tensor<16x32xf32>, tensor<8x32xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @part_depth(%a: tensor<16x32xf32>, %b: tensor<24x16xf32>, %acc: tensor<16x16xf32>, %row: i32) {
  // expected-error@+1 {{sums over 32 columns of a, but over 24 of b}}
  %c = tile.dot %a, %b, %acc from %row : tensor<16x32xf32>, tensor<24x16xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @offset_place(%x: tensor<16x16xf32>) {
  // expected-error@+1 {{'tile.shared_offset' belongs on a tile.buffer or tile.top_create}}
  %m = tile.reduce last %x {tile.shared_offset = 0 : i64} : tensor<16x16xf32> -> tensor<16xf32>
  return
}
