// A value of the template whose name has a meaning in the emitted text gets a number: a word of C++, a function of the
// device library, a constant of the kernel.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: alignas(8) int32 friend_2;
// CHECK: names(const __grid_constant__ Arguments args) {
func.func @names(%x: !tile.view<i32, 1>, %friend: i32) attributes {tile.warps = 1 : i32} {
  %one = arith.constant 1 : i32
  // CHECK-NEXT: const int32 load_rows_2 = args.friend_2 + 1;
  // CHECK-NEXT: const int32 kThreads_2 = load_rows_2 * load_rows_2;
  %load_rows = arith.addi %friend, %one : i32
  %kThreads = arith.muli %load_rows, %load_rows : i32
  %rows = tile.load %x rows(%r) {
    %exists = arith.cmpi slt, %r, %kThreads : i32
    tile.at [%r] if %exists
  } : !tile.view<i32, 1> -> tensor<16xi32>
  tile.store %rows, %x rows(%r) {
    %exists = arith.cmpi slt, %r, %kThreads : i32
    tile.at [%r] if %exists
  } : tensor<16xi32>, !tile.view<i32, 1>
  return
}
