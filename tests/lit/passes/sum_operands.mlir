// RUN: nsa-opt %s --tile-sum-operands | FileCheck %s

// The product has the rounded tile in registers, as its left side.
// CHECK-LABEL: func.func @summed
// CHECK: %[[P:.*]] = tile.cast
// CHECK: %[[SUM:.*]] = tile.sum_operand %[[P]] : tensor<16x32xbf16> -> tensor<16xf32>
// CHECK: return %{{.*}}, %[[SUM]]
func.func @summed(%x: tensor<16x32xf32>, %v: tensor<32x16xbf16>, %acc: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16xf32>) {
  %p = tile.cast %x : tensor<16x32xf32> -> tensor<16x32xbf16>
  %wide = tile.cast %p : tensor<16x32xbf16> -> tensor<16x32xf32>
  %sum = tile.reduce add %wide : tensor<16x32xf32> -> tensor<16xf32>
  %o = tile.dot %p, %v, %acc : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
  return %o, %sum : tensor<16x16xf32>, tensor<16xf32>
}

// A maximum, sums of columns, numbers that are not rounded, and tiles that no product has as its left side stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tile.sum_operand
func.func @others(%x: tensor<32x32xf32>, %v: tensor<32x32xbf16>, %acc: tensor<32x32xf32>)
    -> (tensor<32xf32>, tensor<32xf32, #tile.column>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) {
  %p = tile.cast %x : tensor<32x32xf32> -> tensor<32x32xbf16>
  %wide = tile.cast %p : tensor<32x32xbf16> -> tensor<32x32xf32>
  %max = tile.reduce max %wide : tensor<32x32xf32> -> tensor<32xf32>
  %columns = tile.reduce add %wide : tensor<32x32xf32> -> tensor<32xf32, #tile.column>
  %exact = tile.reduce add %x : tensor<32x32xf32> -> tensor<32xf32>
  %wide_v = tile.cast %v : tensor<32x32xbf16> -> tensor<32x32xf32>
  %right = tile.reduce add %wide_v : tensor<32x32xf32> -> tensor<32xf32>
  %turned = tile.cast %x : tensor<32x32xf32> -> tensor<32x32xf16>
  %wide_turned = tile.cast %turned : tensor<32x32xf16> -> tensor<32x32xf32>
  %transposed = tile.reduce add %wide_turned : tensor<32x32xf32> -> tensor<32xf32>
  %o = tile.dot %p, %v, %acc : tensor<32x32xbf16>, tensor<32x32xbf16> -> tensor<32x32xf32>
  %t = tile.dot %turned, %v, %acc {transpose_a} : tensor<32x32xf16>, tensor<32x32xbf16> -> tensor<32x32xf32>
  return %max, %columns, %exact, %right, %transposed, %o, %t : tensor<32xf32>, tensor<32xf32, #tile.column>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
}

// A loaded left side may stay in shared memory.
// CHECK-LABEL: func.func @loaded
// CHECK-NOT: tile.sum_operand
func.func @loaded(%view: !tile.view<bf16, 1>, %v: tensor<32x16xbf16>, %acc: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16xf32>) {
  %yes = arith.constant true
  %p = tile.load %view rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<bf16, 1> -> tensor<16x32xbf16>
  %wide = tile.cast %p : tensor<16x32xbf16> -> tensor<16x32xf32>
  %sum = tile.reduce add %wide : tensor<16x32xf32> -> tensor<16xf32>
  %o = tile.dot %p, %v, %acc : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
  return %o, %sum : tensor<16x16xf32>, tensor<16xf32>
}

// A left side of f32, and one that is narrower than a block of the product.
// CHECK-LABEL: func.func @other_operands
// CHECK-NOT: tile.sum_operand
func.func @other_operands(%x: tensor<16x32xf32>, %v: tensor<32x16xf32>, %n: tensor<16x8xbf16>, %m: tensor<8x16xbf16>, %acc: tensor<16x16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %copy = tile.cast %x : tensor<16x32xf32> -> tensor<16x32xf32>
  %sum = tile.reduce add %copy : tensor<16x32xf32> -> tensor<16xf32>
  %o = tile.dot %x, %v, %acc : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
  %wide = tile.cast %n : tensor<16x8xbf16> -> tensor<16x8xf32>
  %narrow = tile.reduce add %wide : tensor<16x8xf32> -> tensor<16xf32>
  %p = tile.dot %n, %m, %acc : tensor<16x8xbf16>, tensor<8x16xbf16> -> tensor<16x16xf32>
  return %sum, %narrow, %o, %p : tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}
