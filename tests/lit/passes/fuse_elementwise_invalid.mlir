// RUN: nsa-opt %s --tile-fuse-elementwise --verify-diagnostics

func.func @different_values(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{is a tile of different values; only one value for all elements can be compiled}}
  %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = arith.addf %x, %table : tensor<2xf32>
  return %y : tensor<2xf32>
}
