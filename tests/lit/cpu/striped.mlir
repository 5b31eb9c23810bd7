// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse --split-input-file | FileCheck %s
// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=8 --cse --split-input-file | FileCheck %s --check-prefix=AVX2

// A row of 72 columns takes 80 words, and no transpose. It is reduced in four full vectors and half a one, then along the lanes.
// The value per row is one word, which is read for all lanes in the loop over rows. Column numbers run along the lanes, and a
// value per column is a vector.
// CHECK-LABEL: func.func @rows(
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[LANES:.*]] = arith.constant dense<[0, 1, 2,
// The load.
// CHECK: scf.for %{{.*}} = %{{.*}} to %c3_i64 {{.*}}
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %{{.*}} to %c4_i64
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK-NOT: vector.shuffle
// The sum.
// CHECK: scf.for %{{.*}} = %{{.*}} to %c3_i64
// CHECK-COUNT-3: arith.addf %{{.*}} : vector<16xf32>
// CHECK: %[[IS_COLUMN:.*]] = arith.cmpi slt, %[[LANES]], %{{.*}} : vector<16xi32>
// CHECK: arith.select %[[IS_COLUMN]], %{{.*}}, %[[NONE]] : vector<16xi1>, vector<16xf32>
// CHECK-COUNT-4: vector.shuffle
// CHECK: %[[SUM:.*]] = vector.extract %{{.*}}[0] : f32 from vector<16xf32>
// CHECK: llvm.store %[[SUM]], %{{.*}} : f32, !llvm.ptr
// The map.
// CHECK: scf.for %{{.*}} = %{{.*}} to %c3_i64
// CHECK: %[[ROW:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK: %[[WIDE:.*]] = vector.broadcast %[[ROW]] : f32 to vector<16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c5_i64
// CHECK: %[[X:.*]] = llvm.load %{{.*}} {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: %[[WEIGHT:.*]] = llvm.load %{{.*}} {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: arith.addi %{{.*}}, %[[LANES]] : vector<16xi32>
// CHECK: arith.mulf %[[X]], %[[WIDE]] : vector<16xf32>
// CHECK-NOT: vector.shuffle
// A row of 72 columns is nine whole vectors of eight lanes.
// AVX2-LABEL: func.func @rows(
// AVX2-NOT: arith.select
// AVX2-COUNT-3: vector.shuffle
// AVX2-NOT: vector.shuffle
// AVX2: scf.for %{{.*}} = %{{.*}} to %c9_i64
// AVX2-NOT: vector.shuffle
// AVX2-LABEL: func.func @columns(
func.func @rows(%view: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %x = tile.load %view rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<3x72xf32>
  %weight = tile.load %view rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<72xf32, #tile.column>
  %sum = tile.reduce add %x : tensor<3x72xf32> -> tensor<3xf32>
  %sums = tile.broadcast %sum : tensor<3xf32> -> tensor<3x72xf32>
  %scaled = arith.mulf %x, %sums : tensor<3x72xf32>
  %weights = tile.broadcast %weight : tensor<72xf32, #tile.column> -> tensor<3x72xf32>
  %weighted = arith.mulf %scaled, %weights : tensor<3x72xf32>
  %number = tile.iota 1 : tensor<3x72xi32>
  %numbers = arith.sitofp %number : tensor<3x72xi32> to tensor<3x72xf32>
  %y = arith.addf %weighted, %numbers : tensor<3x72xf32>
  tile.store %y, %view rows(%r) { tile.at [%r] if %yes } : tensor<3x72xf32>, !tile.view<f32, 1>
  return
}

// -----

// The maximum of each column combines the rows, 128 bytes apart, vector by vector.
// CHECK-LABEL: func.func @columns(
// CHECK: :2 = scf.for %{{.*}} = %{{.*}} to %c2_i64 {{.*}} iter_args(%[[AT:[^ ]*]] =
// CHECK-NEXT: %[[FIRST:.*]] = llvm.load %[[AT]] {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK-NEXT: %[[PLACE:.*]] = llvm.getelementptr inbounds %[[AT]][128]
// CHECK-NEXT: %[[SECOND:.*]] = llvm.load %[[PLACE]] {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK-NEXT: arith.cmpf ogt, %[[FIRST]], %[[SECOND]] : vector<16xf32>
// CHECK-NOT: vector.shuffle
func.func @columns(%view: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %x = tile.load %view rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<2x24xf32>
  %max = tile.reduce max %x : tensor<2x24xf32> -> tensor<24xf32, #tile.column>
  tile.store %max, %view rows(%r) { tile.at [%r] if %yes } : tensor<24xf32, #tile.column>, !tile.view<f32, 1>
  return
}

// -----

// A row shorter than a vector has no full vector.
// CHECK-LABEL: func.func @short(
// CHECK: %[[LAST:.*]] = arith.select
// CHECK-NEXT: vector.shuffle %[[LAST]], %[[LAST]]
func.func @short(%view: !tile.view<f32, 1>) {
  %yes = arith.constant true
  %x = tile.load %view rows(%r) { tile.at [%r] if %yes } : !tile.view<f32, 1> -> tensor<1x8xf32>
  %sum = tile.reduce add %x : tensor<1x8xf32> -> tensor<1xf32>
  tile.store %sum, %view rows(%r) { tile.at [%r] if %yes } : tensor<1xf32>, !tile.view<f32, 1>
  return
}
