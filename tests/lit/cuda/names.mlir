// A value of the template whose name has a meaning in the emitted text gets a number: a word of C++, a function or a type
// of the device library, a constant of the kernel.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: alignas(8) int32 friend_2;
// CHECK-NEXT: alignas(8) int32 TopLists_2;
// CHECK-NEXT: alignas(8) int32 top_clear_2;
// CHECK-NEXT: alignas(8) int32 top_insert_2;
// CHECK-NEXT: alignas(8) int32 top_next_2;
// CHECK-NEXT: alignas(8) int32 shift_columns_2;
// CHECK-NEXT: alignas(8) int32 rows_of_2;
// CHECK-NEXT: alignas(8) int32 reduce_last_2;
// CHECK-NEXT: alignas(8) int32 reduce_rows_add_2;
// CHECK-NEXT: alignas(8) int32 reduce_rows_max_2;
// CHECK-NEXT: alignas(8) int32 read_partials_add_2;
// CHECK-NEXT: alignas(8) int32 read_partials_max_2;
// CHECK-NEXT: alignas(8) int32 write_partials_add_2;
// CHECK-NEXT: alignas(8) int32 write_partials_max_2;
// CHECK: names(const __grid_constant__ Arguments args) {
func.func @names(%x: !tile.view<i32, 1>, %friend: i32, %TopLists: i32, %top_clear: i32, %top_insert: i32, %top_next: i32,
                 %shift_columns: i32, %rows_of: i32, %reduce_last: i32, %reduce_rows_add: i32, %reduce_rows_max: i32,
                 %read_partials_add: i32, %read_partials_max: i32, %write_partials_add: i32, %write_partials_max: i32)
    attributes {tile.warps = 1 : i32} {
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
