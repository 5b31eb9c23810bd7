// RUN: nsa-opt %s --tile-fuse-elementwise --verify-diagnostics --split-input-file

func.func @different_values(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{is a tile of different values; only one value for all elements can be compiled}}
  %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = arith.addf %x, %table : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @two_readers(%x: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xf32>) {
  // expected-error@+1 {{is a tile of f64 that more than one elementwise expression needs}}
  %wide = arith.sitofp %x : tensor<64xi32> to tensor<64xf64>
  %y = arith.truncf %wide : tensor<64xf64> to tensor<64xf32>
  %square = arith.mulf %wide, %wide : tensor<64xf64>
  %z = arith.truncf %square : tensor<64xf64> to tensor<64xf32>
  return %y, %z : tensor<64xf32>, tensor<64xf32>
}

// -----

func.func @splat(%x: f64) -> tensor<64xf64> {
  // expected-error@+1 {{is a tile of f64 that more than one elementwise expression needs}}
  %y = tile.splat %x : tensor<64xf64>
  return %y : tensor<64xf64>
}
