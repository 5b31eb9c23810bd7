// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=16 --cse --split-input-file | FileCheck %s
// RUN: nsa-opt %s --tile-cpu --tile-lower-to-cpu=lanes=8 --cse --split-input-file | FileCheck %s --check-prefix=AVX2

// The slot block: a view of rank 1 takes pointer, stride and flags, so the scalar is slot 3. Rows go through the staging area
// behind the tile's own 8192 bytes and are transposed into panels; the map works in place, one vector a column. The rows are no
// multiple of 16, but the last column is taken only of panels.
// CHECK-LABEL: func.func @map(
// CHECK-SAME: %[[SLOTS:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr, %[[SCRATCH:.*]]: !llvm.ptr {llvm.noalias})
// CHECK-SAME: tile.scratch_bytes = 12416 : i64
// CHECK: llvm.getelementptr inbounds %[[SLOTS]][24]
// CHECK: %[[STAGING:.*]] = llvm.getelementptr inbounds %[[SCRATCH]][8320]
// CHECK: scf.if
// CHECK: vector.shuffle
// CHECK: %[[SCALE:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c2_i64
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64_i64 step %{{.*}} iter_args(%[[AT:[^ ]*]] =
// CHECK: %[[E:.*]] = llvm.load %[[AT]] {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[E]], %[[SCALE]] : vector<16xf32>
// CHECK: llvm.store %[[Y]], %[[AT]]
// CHECK: %[[NEXT:.*]] = llvm.getelementptr inbounds %[[AT]][64]
// CHECK: scf.yield %[[NEXT]]
// Three panels of eight rows.
// AVX2-LABEL: func.func @map(
// AVX2-SAME: tile.scratch_bytes = 8320 : i64
// AVX2: scf.for %{{.*}} to %c3_i64
// AVX2: arith.mulf %{{.*}} : vector<8xf32>
func.func @map(%x: !tile.view<f32, 1>, %scale: f32) {
  %t = tile.load %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<20x64xf32>
  %s = tile.splat %scale : tensor<20x64xf32>
  %y = arith.mulf %t, %s : tensor<20x64xf32>
  %last = tile.reduce last %y : tensor<20x64xf32> -> tensor<20xf32>
  tile.store %y, %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : tensor<20x64xf32>, !tile.view<f32, 1>
  return
}

// -----

// The right side is loaded by rows, without a transpose. Two panels by eight columns stay in registers, behind the pointers into
// A and B; a zero accumulator is no tile; a zero in A is masked out. AVX2 clears B instead.
// CHECK-LABEL: func.func @dot(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c24_i64
// CHECK-NOT: vector.shuffle
// CHECK: scf.for %{{.*}} = %{{.*}} to %c3_i64
// CHECK: :18 = scf.for %{{.*}} = %{{.*}} to %c64_i64{{.*}} iter_args(%{{[^ ]*}} = %{{[^ ]*}}, %{{[^ ]*}} = %{{[^ ]*}}, %[[SUM:[^ ]*]] = %[[ZERO]],
// CHECK: %[[A:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK: %[[USED:.*]] = arith.cmpf une, %[[A]], %[[ZERO]]
// CHECK: %[[B:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK: %[[FMA:.*]] = llvm.intr.fma(%[[A]], %[[B]], %[[SUM]])
// CHECK: arith.select %[[USED]], %[[FMA]], %[[SUM]]
// The reduction is elementwise: four partial maxima.
// CHECK: :5 = scf.for
// CHECK: arith.cmpf ogt
// CHECK-NEXT: arith.select
// AVX2-LABEL: func.func @dot(
// AVX2: :10 = scf.for
// AVX2: arith.select %{{.*}} : vector<8xi1>, vector<8xf32>
// AVX2-NEXT: llvm.intr.fma
func.func @dot(%x: !tile.view<f32, 1>) {
  %a = tile.load %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<32x64xf32>
  %b = tile.load %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<24x64xf32>
  %zero = arith.constant dense<0.0> : tensor<32x24xf32>
  %y = tile.dot %a, %b, %zero {transpose_b, zero_annihilates} : tensor<32x64xf32>, tensor<24x64xf32> -> tensor<32x24xf32>
  %m = tile.reduce max %y : tensor<32x24xf32> -> tensor<32xf32>
  tile.store %m, %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : tensor<32xf32>, !tile.view<f32, 1>
  return
}

// -----

// A loop's tile lives in one buffer: nothing is carried, nothing is copied.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: tile.scratch_bytes = 64 : i64
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
// CHECK: %[[OLD:.*]] = llvm.load %[[AT:.*]] {alignment = 64 : i64}
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[OLD]] : vector<16xf32>
// CHECK: llvm.store %[[NEW]], %[[AT]]{{.*}}
// CHECK-NEXT: }
func.func @in_place(%x: !tile.view<f32, 1>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %t = tile.load %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : !tile.view<f32, 1> -> tensor<16xf32>
  %y = scf.for %i = %zero to %n step %one iter_args(%value = %t) -> (tensor<16xf32>) : i32 {
    %next = arith.addf %value, %value : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  tile.store %y, %x rows(%r) {
    %yes = arith.constant true
    tile.at [%r] if %yes
  } : tensor<16xf32>, !tile.view<f32, 1>
  return
}

// -----

// 16 bit floats are integers in memory and f32 in registers; 13 columns are pieces of 8, 4 and 1.
// CHECK-LABEL: func.func @pieces(
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<8xi16>
// CHECK: arith.extui %{{.*}} : vector<8xi16> to vector<8xi32>
// CHECK: arith.shli
// CHECK: llvm.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<4xi16>
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<1xi16>
// CHECK: } else {
// CHECK: llvm.store %{{.*}} : vector<16xf32>
// CHECK-NOT: bf16
// CHECK: return
func.func @pieces(%x: !tile.view<bf16, 1>, %limit: i32) {
  %t = tile.load %x rows(%r) {
    %exists = arith.cmpi slt, %r, %limit : i32
    tile.at [%r] if %exists
  } columns(13) : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  tile.store %t, %x rows(%r) {
    %exists = arith.cmpi slt, %r, %limit : i32
    tile.at [%r] if %exists
  } columns(13) : tensor<16x16xbf16>, !tile.view<bf16, 1>
  return
}

// -----

// A chunk of longer rows: the row's address moves by its first column, and what is left of the row decides at run time which
// pieces exist. The view is one of two: so are its address and its stride.
// CHECK-LABEL: func.func @chunk(
// CHECK: %[[CHOSEN:.*]] = arith.select %[[FIRST:[^,]*]], %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK: %[[STRIDE:.*]] = arith.select %[[FIRST]], %{{.*}}, %{{.*}} : i64
// CHECK: %[[WIDE:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: %[[COLUMN:.*]] = arith.muli %{{.*}}, %c16_i64 : i64
// CHECK: %[[REST:.*]] = arith.subi %[[WIDE]], %[[COLUMN]] : i64
// A chunk behind the end of the row has none.
// CHECK: %[[THERE:.*]] = arith.maxsi %[[REST]], %c0_i64 : i64
// CHECK: %[[COLUMNS:.*]] = arith.minsi %[[THERE]], %c16_i64 : i64
// CHECK: arith.muli %{{.*}}, %[[STRIDE]] : i64
// CHECK: %[[ROW:.*]] = llvm.getelementptr inbounds %[[CHOSEN]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i16
// CHECK: llvm.getelementptr inbounds %[[ROW]][%[[COLUMN]]] : (!llvm.ptr, i64) -> !llvm.ptr, i16
// CHECK: %[[WHOLE:.*]] = arith.andi %[[COLUMNS]], %c-16_i64 : i64
// CHECK: scf.for %{{.*}} = %c0_i64 to %[[WHOLE]] step %c16_i64
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi16>
// CHECK: arith.andi %[[COLUMNS]], %c8_i64 : i64
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<8xi16>
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<1xi16>
func.func @chunk(%x: !tile.view<bf16, 1>, %y: !tile.view<bf16, 1>, %n: i32, %columns: i32) {
  %yes = arith.constant true
  %zero = arith.constant 0 : i32
  %first = arith.cmpi eq, %n, %zero : i32
  %view = arith.select %first, %x, %y : !tile.view<bf16, 1>
  %t = tile.load %view rows(%r) {
    tile.at [%r] if %yes
  } chunk(%n of %columns) : !tile.view<bf16, 1> -> tensor<16x16xbf16>
  tile.store %t, %view rows(%r) {
    tile.at [%r] if %yes
  } chunk(%n of %columns) : tensor<16x16xbf16>, !tile.view<bf16, 1>
  return
}

// -----

// Where a row goes is read from the tile that says so.
// CHECK-LABEL: func.func @places(
// CHECK: %[[LIMIT:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: arith.extui %{{.*}} : i32 to i64
// CHECK: %[[PLACE:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> i32
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[PLACE]], %[[LIMIT]] : i32
// CHECK: arith.extsi %[[PLACE]] : i32 to i64
// CHECK: scf.if %[[EXISTS]]
func.func @places(%x: !tile.view<i32, 1>, %y: !tile.view<i32, 1>, %limit: i32) {
  %yes = arith.constant true
  %t = tile.load %x rows(%r) {
    tile.at [%r] if %yes
  } : !tile.view<i32, 1> -> tensor<16xi32>
  %where = arith.addi %t, %t : tensor<16xi32>
  tile.store %t, %y rows(%r, %place of %where : tensor<16xi32>) {
    %exists = arith.cmpi slt, %place, %limit : i32
    tile.at [%place] if %exists
  } : tensor<16xi32>, !tile.view<i32, 1>
  return
}

// -----

// CHECK-LABEL: func.func @scalars(
// CHECK-SAME: %[[SLOTS:.*]]: !llvm.ptr {llvm.noalias}, %[[PROGRAM:.*]]: !llvm.ptr,
// CHECK: %[[STATUS:.*]] = llvm.load %[[SLOTS]] {{.*}} -> !llvm.ptr
// CHECK: %[[Y:.*]] = llvm.getelementptr inbounds %[[PROGRAM]][4]
// CHECK: llvm.load %[[Y]] {alignment = 4 : i64} : !llvm.ptr -> i32
// CHECK: llvm.ptrtoint
// CHECK: arith.cmpi ne
// CHECK: %[[PAIR:.*]] = llvm.cmpxchg %[[STATUS]], %{{.*}}, %{{.*}} acq_rel monotonic
// CHECK: %[[FIRST:.*]] = llvm.extractvalue %[[PAIR]][1]
// CHECK: scf.if %[[FIRST]]
func.func @scalars(%status: !tile.view<i32, 1>, %other: !tile.view<f32, 3>) {
  %place = tile.program_id y
  %code = arith.constant 3 : i32
  %given = tile.present %other : !tile.view<f32, 3>
  tile.report %given, %code, %place to %status : !tile.view<i32, 1>
  return
}
