// Branches assign variables that stand before them; scalars used once are folded into their use.
// RUN: emit-cuda %s | FileCheck %s --match-full-lines --strict-whitespace
// Every operation of a program shows in the text: another comparison is another kernel.
// RUN: sed 's/arith.cmpi slt, %%a/arith.cmpi sge, %%a/' %s | emit-cuda - | FileCheck %s --check-prefix=MUTANT

// CHECK-LABEL:branches(const __grid_constant__ Arguments args) {
func.func @branches(%x: !tile.view<f32, 1>, %a: i32, %b: i32, %c: i64) attributes {tile.warps = 1 : i32} {
  %one = arith.constant 1 : i32
  %minus_inf = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  // Scalars: precedence, i1, unsigned, wide.
  // CHECK-NEXT:  const int32 head = blockIdx.y;
  // A condition of several parts keeps its name.
  // CHECK-NEXT:  const bool either = args.a < args.b || (head == 1 && args.c > 5ll);
  // CHECK-EMPTY:
  // CHECK-NEXT:  int32 low;
  // CHECK-NEXT:  int32 high;
  // CHECK-NEXT:  if (either) {
  // CHECK-NEXT:    low = (args.a + args.b) * (head - (args.a - 1));
  // CHECK-NEXT:    high = args.b;
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    low = static_cast<int32>(args.c);
  // CHECK-NEXT:    high = static_cast<int32>(static_cast<uint32>(args.a) >> 1u);
  // CHECK-NEXT:  }
  // MUTANT:  const bool either = args.a >= args.b || (head == 1 && args.c > 5ll);
  %head = tile.program_id y
  %less = arith.cmpi slt, %a, %b : i32
  %is_second = arith.cmpi eq, %head, %one : i32
  %five = arith.constant 5 : i64
  %is_far = arith.cmpi sgt, %c, %five : i64
  %both = arith.andi %is_second, %is_far : i1
  %either = arith.ori %less, %both : i1
  %low, %high = scf.if %either -> (i32, i32) {
    %sum = arith.addi %a, %b : i32
    %before = arith.subi %a, %one : i32
    %difference = arith.subi %head, %before : i32
    %product = arith.muli %sum, %difference : i32
    scf.yield %product, %b : i32, i32
  } else {
    %narrow = arith.trunci %c : i64 to i32
    %half = arith.shrui %a, %one : i32
    scf.yield %narrow, %half : i32, i32
  }

  // CHECK-NEXT:  const auto rows = load_rows<RowVector<float, 16, kWarps>>(
  // CHECK-NEXT:      args.x, [&](int32 r) { return args.x.at(r).only_if(r < low); });
  // CHECK-EMPTY:
  // CHECK-NEXT:  RowVector<float, 16, kWarps> chosen;
  // CHECK-NEXT:  if (low > high) {
  // CHECK-NEXT:    chosen = map<RowVector<float, 16, kWarps>>(
  // CHECK-NEXT:        [&](float rows) { return rows == -infinity() ? not_a_number() : rows; }, rows);
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    chosen = rows;
  // CHECK-NEXT:  }
  %rows = tile.load %x rows(%r) {
    %exists = arith.cmpi slt, %r, %low : i32
    tile.at [%r] if %exists
  } : !tile.view<f32, 1> -> tensor<16xf32>
  %is_more = arith.cmpi sgt, %low, %high : i32
  %chosen = scf.if %is_more -> (tensor<16xf32>) {
    %infs = tile.splat %minus_inf : tensor<16xf32>
    %nans = tile.splat %nan : tensor<16xf32>
    %is_empty = arith.cmpf oeq, %rows, %infs : tensor<16xf32>
    %marked = arith.select %is_empty, %nans, %rows : tensor<16xi1>, tensor<16xf32>
    scf.yield %marked : tensor<16xf32>
  } else {
    scf.yield %rows : tensor<16xf32>
  }
  // CHECK-NEXT:  __syncthreads();
  // CHECK-NEXT:  store_rows(chosen, args.x, [&](int32 r) { return args.x.at(r).only_if(r < high); });
  // CHECK-NEXT:}
  tile.store %chosen, %x rows(%r) {
    %exists = arith.cmpi slt, %r, %high : i32
    tile.at [%r] if %exists
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}
