// One line of CUDA for each operation, with the names of the program.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace

//      CHECK:struct Arguments {
// CHECK-NEXT:  View<bf16, 3> x;
// CHECK-NEXT:  View<float, 1> y;
// CHECK-NEXT:  View<int32, 1> list;
// CHECK-NEXT:  alignas(8) int32 count;
// CHECK-NEXT:  alignas(8) int64 far;
// CHECK-NEXT:  alignas(8) float factor;
// CHECK-NEXT:};
// CHECK-EMPTY:
// CHECK-NEXT:constexpr int32 kWarps = 2;
// CHECK-NEXT:constexpr int32 kThreads = kWarps * kWarpSize;
// CHECK-EMPTY:
// CHECK-NEXT:extern "C" __global__ void NSA_LAUNCH_BOUNDS(kThreads)
// CHECK-NEXT:operations(const __grid_constant__ Arguments args) {
func.func @operations(%x: !tile.view<bf16, 3>, %y: !tile.view<f32, 1>, %list: !tile.view<i32, 1>, %count: i32, %far: i64,
                      %factor: f32) attributes {tile.warps = 2 : i32} {
  %zero = arith.constant 0 : i32
  %seven = arith.constant 7 : i32
  %zero_f = arith.constant 0.0 : f32
  %third = arith.constant 0.333333343 : f32
  // CHECK-NEXT:  extern __shared__ __align__(128) unsigned char shared_memory[];
  // CHECK-NEXT:  const SharedTile<bf16, 16, 32> keys_shared(shared_memory);
  // CHECK-NEXT:  const SharedTile<bf16, 32, 32> queries_shared(shared_memory + 1024);
  // CHECK-EMPTY:
  // CHECK-NEXT:  const int32 block = blockIdx.x;
  // CHECK-NEXT:  const int32 first = load_scalar(args.list, block);
  // CHECK-NEXT:  report(first < 0 || first > args.count, 7, block, args.list);
  %block = tile.program_id x
  %first = tile.load_scalar %list[%block] : !tile.view<i32, 1>
  %negative = arith.cmpi slt, %first, %zero : i32
  %large = arith.cmpi sgt, %first, %count : i32
  %bad = arith.ori %negative, %large : i1
  tile.report %bad, %seven, %block to %list : !tile.view<i32, 1>

  // Copies that follow each other are waited for together.
  // CHECK-NEXT:  load_tile<kThreads>(keys_shared, args.x, 30, evenly_spaced([&](int32 r) { return args.x.at(0, first + r, block); }));
  // CHECK-NEXT:  load_tile<kThreads>(queries_shared, args.x, 32, [&](int32 r) {
  // CHECK-NEXT:    const int32 time = first + r;
  // CHECK-NEXT:    return args.x.at(block, time, time / 7).only_if(time < args.count);
  // CHECK-NEXT:  });
  // CHECK-NEXT:  commit_copies();
  // CHECK-NEXT:  wait_copies<0>();
  // CHECK-NEXT:  __syncthreads();
  // CHECK-NEXT:  const auto queries = load_operand<Fragment<bf16, 32, 32, kWarps>>(queries_shared);
  %keys = tile.load %x rows(%r) {
    %time = arith.addi %first, %r : i32
    %always = arith.constant true
    tile.at [%zero, %time, %block] if %always
  } columns(30) : !tile.view<bf16, 3> -> tensor<16x32xbf16>
  %queries = tile.load %x rows(%r) {
    %time = arith.addi %first, %r : i32
    %exists = arith.cmpi slt, %time, %count : i32
    %head = arith.divsi %time, %seven : i32
    tile.at [%block, %time, %head] if %exists
  } : !tile.view<bf16, 3> -> tensor<32x32xbf16>

  // CHECK-NEXT:  const auto scores = dot_transposed(queries, keys_shared, splat<Fragment<float, 32, 16, kWarps>>(0.0f));
  // CHECK-NEXT:  const auto rounded = map<Fragment<bf16, 32, 16, kWarps>>([&](float scores) { return scores; }, scores);
  // CHECK-NEXT:  const auto values = dot(rounded, keys_shared, splat<Fragment<float, 32, 32, kWarps>>(args.factor));
  // CHECK-NEXT:  const auto careful = dot_annihilating(rounded, keys_shared, values);
  // CHECK-NEXT:  const auto largest = reduce_max(careful);
  // CHECK-NEXT:  const auto total = reduce_add(careful);
  %no_scores = tile.splat %zero_f : tensor<32x16xf32>
  %scores = tile.dot %queries, %keys, %no_scores {transpose_b} : tensor<32x32xbf16>, tensor<16x32xbf16> -> tensor<32x16xf32>
  %rounded = tile.cast %scores : tensor<32x16xf32> -> tensor<32x16xbf16>
  %factors = tile.splat %factor : tensor<32x32xf32>
  %values = tile.dot %rounded, %keys, %factors : tensor<32x16xbf16>, tensor<16x32xbf16> -> tensor<32x32xf32>
  %careful = tile.dot %rounded, %keys, %values {zero_annihilates} : tensor<32x16xbf16>, tensor<16x32xbf16> -> tensor<32x32xf32>
  %largest = tile.reduce max %careful : tensor<32x32xf32> -> tensor<32xf32>
  %total = tile.reduce add %careful : tensor<32x32xf32> -> tensor<32xf32>

  // CHECK-NEXT:  const auto bias = load_rows<RowVector<float, 32, kWarps>>(args.y, [&](int32 r) { return args.y.at(r); });
  // CHECK-NEXT:  const auto result = map<Fragment<bf16, 32, 32, kWarps>>([&](float careful, float bias, int32 row, int32 column) {
  // CHECK-NEXT:    return row < column ? careful * 0.333333343f : exp2_approx(bias);
  // CHECK-NEXT:  }, careful, bias);
  %bias = tile.load %y rows(%r) {
    %always = arith.constant true
    tile.at [%r] if %always
  } : !tile.view<f32, 1> -> tensor<32xf32>
  %row = tile.iota 0 : tensor<32x32xi32>
  %column = tile.iota 1 : tensor<32x32xi32>
  %above = arith.cmpi slt, %row, %column : tensor<32x32xi32>
  %thirds = tile.splat %third : tensor<32x32xf32>
  %scaled = arith.mulf %careful, %thirds : tensor<32x32xf32>
  %bias_wide = tile.broadcast %bias : tensor<32xf32> -> tensor<32x32xf32>
  %grown = math.exp2 %bias_wide : tensor<32x32xf32>
  %mixed = arith.select %above, %scaled, %grown : tensor<32x32xi1>, tensor<32x32xf32>
  %result = tile.cast %mixed : tensor<32x32xf32> -> tensor<32x32xbf16>

  // CHECK-NEXT:  store_tile(result, args.x, 30, [&](int32 r) { return args.x.at(0, r, block).only_if(r < args.count); });
  tile.store %result, %x rows(%r) {
    %exists = arith.cmpi slt, %r, %count : i32
    tile.at [%zero, %r, %block] if %exists
  } columns(30) : tensor<32x32xbf16>, !tile.view<bf16, 3>

  // CHECK-EMPTY:
  // CHECK-NEXT:  if (args.y.present()) {
  // CHECK-NEXT:    const auto sums = map<RowVector<float, 32, kWarps>>(
  // CHECK-NEXT:        [&](float largest, float total) { return largest + total; }, largest, total);
  // CHECK-NEXT:    __syncthreads();
  // CHECK-NEXT:    store_rows(sums, args.y, [&](int32 r) { return args.y.at(r).only_if(r < args.count); });
  // CHECK-NEXT:  }
  // CHECK-NEXT:}
  %wanted = tile.present %y : !tile.view<f32, 1>
  scf.if %wanted {
    %sums = arith.addf %largest, %total : tensor<32xf32>
    tile.store %sums, %y rows(%r) {
      %exists = arith.cmpi slt, %r, %count : i32
      tile.at [%r] if %exists
    } : tensor<32xf32>, !tile.view<f32, 1>
  }
  return
}
