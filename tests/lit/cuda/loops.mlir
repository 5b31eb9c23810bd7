// A loop's copies run ahead of it by its stages; what it carries are variables.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

func.func @pipeline(%k: !tile.view<f32, 2>, %out: !tile.view<f32, 1>, %count: i32) attributes {tile.warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %head = tile.program_id y
  %q = tile.load %k rows(%r) {
    %exists = arith.cmpi slt, %r, %count : i32
    tile.at [%r, %head] if %exists
  } : !tile.view<f32, 2> -> tensor<16x8xf32>
  %none = tile.splat %zero_f : tensor<16xf32>
  %no_scores = tile.splat %zero_f : tensor<16x16xf32>

  // The left side of floats stays in shared memory.
  //      CHECK:  const SharedTile<float, 16, 8> q_shared(shared_memory);
  // CHECK-NEXT:  const Ring<SharedTile<float, 16, 8>, 3> k_tile_ring(shared_memory + 512);
  // Its copies are the oldest group. The second loop reads it too, so it is waited for here and not by the first loop.
  //      CHECK:  load_tile<kThreads>(
  // CHECK-NEXT:      q_shared, args.k, 8, evenly_spaced([&](int32 r) { return args.k.at(r, head).only_if(r < args.count); }));
  // CHECK-NEXT:  commit_copies();
  // CHECK-EMPTY:
  // CHECK-NEXT:  const auto fetch = [&](int32 key, int32 stage) {
  // CHECK-NEXT:    load_tile<kThreads>(k_tile_ring[stage], args.k, 8, evenly_spaced([&](int32 r) {
  // CHECK-NEXT:      const int32 time = key + r;
  // CHECK-NEXT:      return args.k.at(time, head).only_if(time < args.count);
  // CHECK-NEXT:    }));
  // CHECK-NEXT:  };
  // CHECK-NEXT:  for (int32 stage = 0; stage < 2; ++stage) {
  // CHECK-NEXT:    if (stage * 16 < args.count)
  // CHECK-NEXT:      fetch(stage * 16, stage);
  // CHECK-NEXT:    commit_copies();
  // CHECK-NEXT:  }
  // CHECK-NEXT:  wait_copies<2>();
  // CHECK-NEXT:  __syncthreads();
  // CHECK-EMPTY:
  // CHECK-NEXT:  auto sum = splat<RowVector<float, 16, kWarps>>(0.0f);
  // CHECK-NEXT:  auto last = splat<RowVector<float, 16, kWarps>>(0.0f);
  // CHECK-NEXT:  int32 tiles = 0;
  // CHECK-EMPTY:
  // CHECK-NEXT:  for (int32 key = 0, stage = 0; key < args.count; key += 16, stage = next_stage<3>(stage)) {
  // CHECK-NEXT:    wait_copies<1>();
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    if (args.count - key > 32)
  // CHECK-NEXT:      fetch(key + 32, previous_stage<3>(stage));
  // CHECK-NEXT:    commit_copies();
  // CHECK-NEXT:    const auto k_tile = k_tile_ring[stage];
  // CHECK-EMPTY:
  // CHECK-NEXT:    const auto scores = dot_transposed(q_shared, k_tile, splat<Fragment<float, 16, 16, kWarps>>(0.0f));
  // CHECK-NEXT:    const auto row_sum = reduce_add(scores);
  // `sum` is still read after `sum_next`, so it is assigned at the end; `last` is not.
  // CHECK-NEXT:    const auto sum_next = map<RowVector<float, 16, kWarps>>(
  // CHECK-NEXT:        [&](float sum, float row_sum) { return sum + row_sum; }, sum, row_sum);
  // CHECK-NEXT:    last = map<RowVector<float, 16, kWarps>>([&](float sum, float sum_next) { return sum * sum_next; }, sum, sum_next);
  // CHECK-NEXT:    const int32 tiles_next = tiles + 1;
  // CHECK-NEXT:    sum = sum_next;
  // CHECK-NEXT:    tiles = tiles_next;
  // CHECK-NEXT:  }
  %sum_all, %last_all, %tiles_all = scf.for %key = %zero to %count step %step
      iter_args(%sum = %none, %last = %none, %tiles = %zero) -> (tensor<16xf32>, tensor<16xf32>, i32) : i32 {
    %one = arith.constant 1 : i32
    %k_tile = tile.load %k rows(%r) {
      %time = arith.addi %key, %r : i32
      %exists = arith.cmpi slt, %time, %count : i32
      tile.at [%time, %head] if %exists
    } : !tile.view<f32, 2> -> tensor<16x8xf32>
    %scores = tile.dot %q, %k_tile, %no_scores {transpose_b} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
    %row_sum = tile.reduce add %scores : tensor<16x16xf32> -> tensor<16xf32>
    %sum_next = arith.addf %sum, %row_sum : tensor<16xf32>
    %last_next = arith.mulf %sum, %sum_next : tensor<16xf32>
    %tiles_next = arith.addi %tiles, %one : i32
    scf.yield %sum_next, %last_next, %tiles_next : tensor<16xf32>, tensor<16xf32>, i32
  } {tile.stages = 3 : i32}

  // Without stages each iteration copies for itself, and ends with a barrier before the next one overwrites.
  // CHECK-EMPTY:
  // CHECK-NEXT:  auto again = sum;
  // CHECK-NEXT:  auto swapped = last;
  // CHECK-NEXT:  for (int32 i = tiles; i < args.count; i += 16) {
  // CHECK-NEXT:    load_tile<kThreads>(
  // CHECK-NEXT:        plain_shared, args.k, 8, evenly_spaced([&](int32 r) { return args.k.at(i, head).only_if(r < args.count); }));
  // CHECK-NEXT:    commit_copies();
  // CHECK-NEXT:    wait_copies<0>();
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    const auto scores = dot_transposed(q_shared, plain_shared, splat<Fragment<float, 16, 16, kWarps>>(0.0f));
  // CHECK-NEXT:    const auto reduced = reduce_max(scores);
  // CHECK-NEXT:    store_rows(reduced, args.out, [&](int32 r) { return args.out.at(r).only_if(r < i); });
  // CHECK-NEXT:    const auto swapped_before = swapped;
  // CHECK-NEXT:    const auto again_before = again;
  // CHECK-NEXT:    again = swapped_before;
  // CHECK-NEXT:    swapped = again_before;
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:  }
  %again_all, %swapped_all = scf.for %i = %tiles_all to %count step %step
      iter_args(%again = %sum_all, %swapped = %last_all) -> (tensor<16xf32>, tensor<16xf32>) : i32 {
    %plain = tile.load %k rows(%r) {
      %exists = arith.cmpi slt, %r, %count : i32
      tile.at [%i, %head] if %exists
    } : !tile.view<f32, 2> -> tensor<16x8xf32>
    %scores = tile.dot %q, %plain, %no_scores {transpose_b} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
    %reduced = tile.reduce max %scores : tensor<16x16xf32> -> tensor<16xf32>
    tile.store %reduced, %out rows(%r) {
      %exists = arith.cmpi slt, %r, %i : i32
      tile.at [%r] if %exists
    } : tensor<16xf32>, !tile.view<f32, 1>
    scf.yield %swapped, %again : tensor<16xf32>, tensor<16xf32>
  }
  tile.store %again_all, %out rows(%r) {
    %exists = arith.cmpi slt, %r, %count : i32
    tile.at [%r] if %exists
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}
