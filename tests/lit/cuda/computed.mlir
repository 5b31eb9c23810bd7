// Gradients of attention with keys first, in small: computed tiles go to shared memory, one value per column comes from memory,
// sums run along the rows, and keys stay for all tiles of queries.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

func.func @keys_first(%q: !tile.view<bf16, 1>, %k: !tile.view<bf16, 1>, %lse: !tile.view<f32, 1>, %dq: !tile.view<f32, 1>,
    %dk: !tile.view<f32, 1>, %bias: !tile.view<f32, 1>, %queries: i32, %is_edge: i1) attributes {tile.warps = 2 : i32} {
  %yes = arith.constant true
  %zero = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %zero_f = arith.constant 0.0 : f32
  %no_scores = tile.splat %zero_f : tensor<32x16xf32>
  %no_keys = tile.splat %zero_f : tensor<32x64xf32>
  %no_queries = tile.splat %zero_f : tensor<32x64xf32>
  %no_sums = tile.splat %zero_f : tensor<16xf32, #tile.column>
  // The keys are the left side of the scores and the right side of the queries' gradients.
  //      CHECK:  const SharedTile<bf16, 32, 64> k_tile_shared(shared_memory);
  // CHECK-NEXT:  const Ring<SharedTile<bf16, 32, 64>, 2> q_tile_ring(shared_memory + 4096);
  // CHECK-NEXT:  const SharedTile<bf16, 32, 32> ds_shared(shared_memory + 12288);
  // The partial sums share the bytes of ds: they are written when ds is no longer read.
  // CHECK-NEXT:  const SharedTile<float, 8, 32> sums_shared(shared_memory + 12288);
  %k_tile = tile.load %k rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
  //      CHECK:  auto dk_sum = splat<Fragment<float, 32, 64, kWarps>>(0.0f);
  // CHECK-EMPTY:
  // CHECK-NEXT:  for (int32 pair = 0, stage = 0; pair < args.queries; pair += 32, stage = next_stage<2>(stage)) {
  // CHECK-NEXT:    wait_copies<0>();
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    if (args.queries - pair > 32)
  // CHECK-NEXT:      fetch(pair + 32, previous_stage<2>(stage));
  // CHECK-NEXT:    commit_copies();
  // CHECK-NEXT:    const auto q_tile = q_tile_ring[stage];
  // CHECK-EMPTY:
  // CHECK-NEXT:    const auto log_sum = load_columns<ColumnVector<float, 32>>(
  // CHECK-NEXT:        args.lse, [&](int32 r) { return args.lse.at(pair + r); });
  // CHECK-NEXT:    const auto weight = dot_transposed(k_tile_shared, q_tile, splat<Fragment<float, 32, 32, kWarps>>(0.0f));
  // CHECK-NEXT:    const auto p = map<Fragment<float, 32, 32, kWarps>>(
  // CHECK-NEXT:        [&](float weight, float log_sum) { return exp2_approx(weight - log_sum); }, weight, log_sum);
  // CHECK-NEXT:    const auto ds = map<Fragment<bf16, 32, 32, kWarps>>([&](float p) { return p; }, p);
  // CHECK-NEXT:    write_tile(ds, ds_shared);
  // CHECK-NEXT:    dk_sum = dot(ds, q_tile, dk_sum);
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    const auto dq_tile = dot_keeping(
  // CHECK-NEXT:        transposed(ds_shared), k_tile_shared, splat<Fragment<float, 32, 64, kWarps>>(0.0f), args.is_edge);
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    write_partials_add(p, sums_shared);
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    const auto sums = read_partials_add<kWarps>(sums_shared);
  // CHECK-NEXT:    store_tile(dq_tile, args.dq, 64, [&](int32 r) { return args.dq.at(pair + r); });
  // CHECK-NEXT:    store_columns(sums, args.bias, [&](int32 r) { return args.bias.at(pair + r); });
  // CHECK-NEXT:  }
  %width = arith.constant 32 : i32
  %no_pairs = tile.splat %zero_f : tensor<32x32xf32>
  %dk_all = scf.for %pair = %zero to %queries step %width iter_args(%dk_sum = %no_keys) -> (tensor<32x64xf32>) : i32 {
    %q_tile = tile.load %q rows(%r) {
      %index = arith.addi %pair, %r : i32
      tile.at [%index] if %yes
    } : !tile.view<bf16, 1> -> tensor<32x64xbf16>
    %log_sum = tile.load %lse rows(%r) {
      %index = arith.addi %pair, %r : i32
      tile.at [%index] if %yes
    } : !tile.view<f32, 1> -> tensor<32xf32, #tile.column>
    %weight = tile.dot %k_tile, %q_tile, %no_pairs {transpose_b} : tensor<32x64xbf16>, tensor<32x64xbf16> -> tensor<32x32xf32>
    %log_sum_wide = tile.broadcast %log_sum : tensor<32xf32, #tile.column> -> tensor<32x32xf32>
    %shifted = arith.subf %weight, %log_sum_wide : tensor<32x32xf32>
    %p = math.exp2 %shifted : tensor<32x32xf32>
    %ds = tile.cast %p : tensor<32x32xf32> -> tensor<32x32xbf16>
    %dk_next = tile.dot %ds, %q_tile, %dk_sum : tensor<32x32xbf16>, tensor<32x64xbf16> -> tensor<32x64xf32>
    %dq_tile = tile.dot %ds, %k_tile, %no_queries where %is_edge {transpose_a, zero_annihilates} : tensor<32x32xbf16>, tensor<32x64xbf16> -> tensor<32x64xf32>
    %sums = tile.reduce add %p : tensor<32x32xf32> -> tensor<32xf32, #tile.column>
    tile.store %dq_tile, %dq rows(%r) {
      %index = arith.addi %pair, %r : i32
      tile.at [%index] if %yes
    } : tensor<32x64xf32>, !tile.view<f32, 1>
    tile.store %sums, %bias rows(%r) {
      %index = arith.addi %pair, %r : i32
      tile.at [%index] if %yes
    } : tensor<32xf32, #tile.column>, !tile.view<f32, 1>
    scf.yield %dk_next : tensor<32x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %dk_all, %dk rows(%r) {
    tile.at [%r] if %yes
  } : tensor<32x64xf32>, !tile.view<f32, 1>
  return
}
