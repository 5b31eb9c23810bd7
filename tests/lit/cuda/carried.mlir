// What a branch makes of carried tiles goes into their variables in its arms, if nothing reads the old value any more:
// %a is still read after %minus, and %e after %e_high, so they are assigned at the end. A value that is yielded twice is
// copied.
// RUN: emit-cuda %s | FileCheck %s

// CHECK: for (int32 i = 0;
// CHECK-NEXT: RowVector<float, 16, kWarps> a_next;
// CHECK-NEXT: RowVector<float, 16, kWarps> e_next;
// CHECK-NEXT: if (i < args.limit) {
// CHECK-NEXT: a_next = map<RowVector<float, 16, kWarps>>([&](float a) { return -a; }, a);
// CHECK-NEXT: b = map<RowVector<float, 16, kWarps>>([&](float a, float a_next) { return a * a_next; }, a, a_next);
// CHECK-NEXT: d = map<RowVector<float, 16, kWarps>>([&](float d, float b) { return d + b; }, d, b);
// CHECK-NEXT: e_next = map<RowVector<float, 16, kWarps>>([&](float e) { return exp2_approx(e); }, e);
// CHECK-NEXT: } else {
// CHECK-NEXT: b = map<RowVector<float, 16, kWarps>>([&](float a) { return exp2_approx(a); }, a);
// CHECK-NEXT: e_next = map<RowVector<float, 16, kWarps>>([&](float e, float b) { return e * b; }, e, b);
// CHECK-NEXT: d = map<RowVector<float, 16, kWarps>>([&](float e, float e_next) { return e + e_next; }, e, e_next);
// CHECK-NEXT: a_next = b;
// CHECK-NEXT: }
// CHECK-NEXT: a = a_next;
// CHECK-NEXT: e = e_next;
// CHECK-NEXT: }
func.func @carried(%x: !tile.view<f32, 1>, %c: f32, %count: i32, %limit: i32) attributes {tile.warps = 1 : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %start = tile.splat %c : tensor<16xf32>
  %a_all, %b_all, %d_all, %e_all = scf.for %i = %zero to %count step %one
      iter_args(%a = %start, %b = %start, %d = %start, %e = %start) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) : i32 {
    %is_low = arith.cmpi slt, %i, %limit : i32
    %a_next, %b_next, %d_next, %e_next = scf.if %is_low -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %minus = arith.negf %a : tensor<16xf32>
      %late = arith.mulf %a, %minus : tensor<16xf32>
      %d_low = arith.addf %d, %late : tensor<16xf32>
      %e_low = math.exp2 %e : tensor<16xf32>
      scf.yield %minus, %late, %d_low, %e_low : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
    } else {
      %power = math.exp2 %a : tensor<16xf32>
      %e_high = arith.mulf %e, %power : tensor<16xf32>
      %d_high = arith.addf %e, %e_high : tensor<16xf32>
      scf.yield %power, %power, %d_high, %e_high : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    scf.yield %a_next, %b_next, %d_next, %e_next : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  }
  tile.store %a_all, %x rows(%r) { tile.at [%r] if %always } : tensor<16xf32>, !tile.view<f32, 1>
  tile.store %b_all, %x rows(%r) { tile.at [%r] if %always } : tensor<16xf32>, !tile.view<f32, 1>
  tile.store %d_all, %x rows(%r) { tile.at [%r] if %always } : tensor<16xf32>, !tile.view<f32, 1>
  tile.store %e_all, %x rows(%r) { tile.at [%r] if %always } : tensor<16xf32>, !tile.view<f32, 1>
  return
}
