// A chunk of longer rows begins at its first column; where constants tell that all chunks are whole, nothing is asked of
// the columns. A view may be chosen. A left side that a map reads too runs ahead of its loop like the right side, and goes
// from the ring to registers.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: const Ring<SharedTile<bf16, 16, 16>, 2> x_tile_ring(shared_memory);
// CHECK-NEXT: const Ring<SharedTile<bf16, 16, 16>, 2> w_tile_ring(shared_memory + 1024);
// CHECK: const auto x = of_keys ? args.k : args.v;
// CHECK: const auto fetch = [&](int32 i, int32 stage) {
// CHECK-NEXT: load_tile<kThreads>(
// CHECK-NEXT: x_tile_ring[stage], x, 16, evenly_spaced([&](int32 r) { return x.at(i + r).from_column(args.chunk * 16); }));
// CHECK-NEXT: load_tile<kThreads>(
// CHECK-NEXT: w_tile_ring[stage], args.w, args.width - args.chunk * 16, evenly_spaced([&](int32 r) { return args.w.at(r).from_column(args.chunk * 16).only_if(r < args.width); }));
// CHECK: for (int32 i = 0,
// CHECK: const auto x_tile = load_operand<Fragment<bf16, 16, 16, kWarps>>(x_tile_ring[stage]);
// CHECK-NEXT: const auto w_tile = w_tile_ring[stage];
// CHECK: const auto shift = load_fragment<Fragment<bf16, 16, 16, kWarps>>(
// CHECK-NEXT: args.w, 16, [&](int32 r) { return args.w.at(i).from_column((args.chunk + 1) * 16); });
// CHECK-NEXT: left = map<Fragment<bf16, 16, 16, kWarps>>(
// CHECK: left = x_tile;
// CHECK: store_tile(
// CHECK-NEXT: sum, args.out, args.width - args.chunk * 16, [&](int32 r) { return args.out.at(r).from_column(args.chunk * 16); });
func.func @chunks(%k: !tile.view<bf16, 1>, %v: !tile.view<bf16, 1>, %w: !tile.view<bf16, 1>, %out: !tile.view<f32, 1>,
                  %chunk: i32, %width: i32, %shifted: i1) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero_f = arith.constant 0.0 : f32
  %none = tile.splat %zero_f : tensor<16x16xf32>
  %program = tile.program_id x
  %of_keys = arith.cmpi eq, %program, %zero : i32
  %x = arith.select %of_keys, %k, %v : !tile.view<bf16, 1>
  %columns = arith.select %of_keys, %c32, %c64 : i32
  %sums = scf.for %i = %zero to %width step %one iter_args(%sum = %none) -> (tensor<16x16xf32>) : i32 {
    %x_tile = tile.load %x rows(%r) {
      %time = arith.addi %i, %r : i32
      tile.at [%time] if %always
    } chunk(%chunk of %columns) : !tile.view<bf16, 1> -> tensor<16x16xbf16>
    %w_tile = tile.load %w rows(%r) {
      %exists = arith.cmpi slt, %r, %width : i32
      tile.at [%r] if %exists
    } chunk(%chunk of %width) : !tile.view<bf16, 1> -> tensor<16x16xbf16>
    %left = scf.if %shifted -> (tensor<16x16xbf16>) {
      %next = arith.addi %chunk, %one : i32
      %shift = tile.load %w rows(%r) {
        tile.at [%i] if %always
      } chunk(%next of %columns) : !tile.view<bf16, 1> -> tensor<16x16xbf16>
      %x_wide = tile.cast %x_tile : tensor<16x16xbf16> -> tensor<16x16xf32>
      %shift_wide = tile.cast %shift : tensor<16x16xbf16> -> tensor<16x16xf32>
      %moved = arith.addf %x_wide, %shift_wide : tensor<16x16xf32>
      %rounded = tile.cast %moved : tensor<16x16xf32> -> tensor<16x16xbf16>
      scf.yield %rounded : tensor<16x16xbf16>
    } else {
      scf.yield %x_tile : tensor<16x16xbf16>
    }
    %next_sum = tile.dot %left, %w_tile, %sum : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    scf.yield %next_sum : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %sums, %out rows(%r) {
    tile.at [%r] if %always
  } chunk(%chunk of %width) : tensor<16x16xf32>, !tile.view<f32, 1>
  return
}
