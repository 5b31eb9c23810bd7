// The passes over tile programs, in the order in which the pipelines of Passes.h run them.

#ifndef NSA_TILE_PASSES_TD
#define NSA_TILE_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Every target
//===----------------------------------------------------------------------===//

def FuseElementwise : Pass<"tile-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "makes one tile.map of each elementwise expression";
  let description = [{
    An operation of `arith`, `math` or `tile.cast` on tiles is joined with its consumer if every use of its result is in the
    same expression. A value with uses elsewhere ends an expression, so nothing is computed twice. `tile.iota`, `tile.splat`
    and `tile.broadcast` cost nothing and sink into every expression that reads them. A value per row keeps rank 1. After the
    pass, tiles come only from `tile.map`, `tile.splat`, loads, dots and reductions.

    Before:
    ```mlir
    %wide = tile.broadcast %m : tensor<64xf32> -> tensor<64x32xf32>
    %shifted = arith.subf %s, %wide : tensor<64x32xf32>
    %p = math.exp2 %shifted : tensor<64x32xf32>
    ```
    After:
    ```mlir
    %p = tile.map(%0 = %s : tensor<64x32xf32>, %1 = %m : tensor<64xf32>) at (%row, %column) -> tensor<64x32xf32> {
      %2 = arith.subf %0, %1 : f32
      %3 = math.exp2 %2 : f32
      tile.yield %3 : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::nsa::tile::TileDialect"];
}

def AssignLayouts : Pass<"tile-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "says where the elements of each tile are";
  let description = [{
    Each operation demands layouts for its operands and offers layouts for its result (LayoutOpInterface). An operation that
    has tiles but does not say in which layouts is an error. Values that control flow joins have the
    same layout. The set of layouts is closed. Two different demands on one tile are an error, and so is a demand that the
    producer cannot meet. The error names both sides.

    | | `target=gpu` | `target=cpu` |
    |---|---|---|
    | dot: result, accumulator | `accumulator` | `lanes` |
    | sum_operand: operand | `operand_a` | - |
    | dot: left side | `operand_a`; f32: `shared` when loaded for products alone, else `accumulator` | `lanes` |
    | dot: right side, left side that is given transposed | `shared` | `row_major` |
    | one value per row | `row` | `lanes` |
    | one value per column | `column` | `lanes` |
    | all other tiles | `accumulator` | `lanes` |

    A kernel may have a tile whose rows are no whole slabs of 16 rows for each warp, as the one row of a softmax over thousands of
    columns. A CPU program has one warp. If the kernel has no operation that needs fragments (dot, sum_operand, shift, lists, the
    last column), its matrices and its values per column are `striped`, and its values per row are `uniform`, on both targets.

    There is one conversion: a tile that a dot reads from memory gets a `tile.convert_layout` where its producer cannot make it
    there, as a computation, or where another operation reads it in registers. On a GPU a loaded tile that is a left side and is
    read from memory by another dot is read there by both.

    For 16-bit types, `operand_a` and `accumulator` are the same fragments. So a map may read a tile that is the left side of
    a dot.

    Before:
    ```mlir
    %s = tile.dot %q, %k, %zeros {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16> -> tensor<64x32xf32>
    %m = tile.reduce max %s : tensor<64x32xf32> -> tensor<64xf32>
    ```
    After:
    ```mlir
    %s = tile.dot %q, %k, %zeros {tile.layout = #tile.layout<accumulator>, transpose_b} : ...
    %m = tile.reduce max %s {tile.layout = #tile.layout<row>} : ...
    ```
  }];
  let options = [Option<"target", "target", "::nsa::tile::LayoutTarget", "::nsa::tile::LayoutTarget::kGpu", "whose layouts",
      [{::llvm::cl::values(clEnumValN(::nsa::tile::LayoutTarget::kCpu, "cpu", "vector lanes"),
                           clEnumValN(::nsa::tile::LayoutTarget::kGpu, "gpu", "tensor core fragments"))}]>];
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

def JoinProducts : Pass<"tile-join-products", "::mlir::func::FuncOp"> {
  let summary = "makes one product of two that differ only in whether zero annihilates";
  let description = [{
    A branch whose arms are the same product, with and without `zero_annihilates`, becomes one product with `where`. The device
    library then checks the right side first and nearly always computes the plain product. So the kernel contains one copy of
    the product's code instead of two, which saves a tenth of its compile time. Both forms run equally fast.

    Before:
    ```mlir
    %o = scf.if %is_edge -> (tensor<64x64xf32>) {
      %careful = tile.dot %p, %v, %acc {zero_annihilates} : ...
      scf.yield %careful : tensor<64x64xf32>
    } else {
      %plain = tile.dot %p, %v, %acc : ...
      scf.yield %plain : tensor<64x64xf32>
    }
    ```
    After:
    ```mlir
    %o = tile.dot %p, %v, %acc where %is_edge {zero_annihilates} : ...
    ```
  }];
}

def SumOperands : Pass<"tile-sum-operands", "::mlir::func::FuncOp"> {
  let summary = "sums on tensor cores what a product reads as its left side";
  let description = [{
    The sum of each row of a 16-bit tile that is also the left side of a product becomes a `tile.sum_operand`. The tile is in
    the registers of the product already. For each block of 16 x 16 elements a thread runs one `mma` in the place of eight
    conversions and eight additions, and no shuffles follow. Tiles that are loaded, and left sides that are given transposed,
    keep their `tile.reduce`.

    Before:
    ```mlir
    %wide = tile.cast %p : tensor<64x32xbf16> -> tensor<64x32xf32>
    %l = tile.reduce add %wide : tensor<64x32xf32> -> tensor<64xf32>
    %o = tile.dot %p, %v, %acc : ...
    ```
    After:
    ```mlir
    %l = tile.sum_operand %p : tensor<64x32xbf16> -> tensor<64xf32>
    %o = tile.dot %p, %v, %acc : ...
    ```
  }];
  let dependentDialects = ["::nsa::tile::TileDialect"];
}

def InsertCopies : Pass<"tile-insert-copies", "::mlir::func::FuncOp"> {
  let summary = "makes buffers in shared memory, and what fills and reads them";
  let description = [{
    A load whose layout is `shared` or `operand_a` passes through shared memory. It becomes a `tile.buffer` at the start of the
    function, a `tile.copy` that starts to fill the buffer, and a `tile.read` of the tile with the load's layout. Other loads
    go from memory to registers and stay as they are.

    A `tile.convert_layout` becomes a buffer, a `tile.write` of the computed tile and a `tile.read`. A `tile.reduce` of what
    several warps hold, a column of an accumulator or a row of a striped tile, becomes a buffer, `tile.write_partials` and
    `tile.read_partials`.

    Before:
    ```mlir
    %k_tile = tile.load %k rows(%r) { ... } {tile.layout = #tile.layout<shared>} : !tile.view<bf16, 3> -> tensor<32x64xbf16>
    ```
    After:
    ```mlir
    %k_buffer = tile.buffer : !tile.buffer<tensor<32x64xbf16>>
    ...
    tile.copy %k to %k_buffer rows(%r) { ... } : !tile.view<bf16, 3>, !tile.buffer<tensor<32x64xbf16>>
    %k_tile = tile.read %k_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x64xbf16>>
    ```
  }];
  let dependentDialects = ["::nsa::tile::TileDialect"];
}

def ExpandStages : Pass<"tile-expand-stages", "::mlir::func::FuncOp"> {
  let summary = "starts the copies of a pipelined loop ahead of its iterations";
  let description = [{
    In a loop with `tile.stages = S`, S > 1, a copy in the body is started S - 1 iterations early if the rows of a later
    iteration can be computed now. That is the case if they depend only on the induction variable, on values from outside of
    the loop, and on scalars that the body computes from these or loads from places that depend only on these. The loop must
    not store to the views that are read. Other copies stay where they are.

    The buffer of an early copy becomes a ring of S stages. The copy moves into a `tile.fetch` before the loop, with the scalars
    on which it depends. A scalar that the body needs too is computed in both places. If it has several uses, it is marked
    `tile.named`: the emitted code gives it a variable in both places. `tile.fetch_ahead` at the start of the body starts the copies of a later iteration, and
    the tiles are read behind it.

    Before:
    ```mlir
    scf.for %key = %first to %past step %key_tile : i32 {
      tile.copy %k to %k_buffer rows(%r) { ... %key ... } : !tile.view<bf16, 3>, !tile.buffer<tensor<32x64xbf16>>
      %k_tile = tile.read %k_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x64xbf16>>
    } {tile.stages = 2 : i32}
    ```
    After:
    ```mlir
    %fetch = tile.fetch %first to %past step %key_tile stages(2) : i32 (%key, %stage) {
      tile.copy %k to %k_buffer[%stage] rows(%r) { ... %key ... } : !tile.view<bf16, 3>, !tile.buffer<tensor<32x64xbf16>, 2>
    }
    scf.for %key = %first to %past step %key_tile : i32 {
      %stage = tile.fetch_ahead %fetch at %key : i32
      %k_tile = tile.read %k_buffer[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x64xbf16>, 2>
    } {tile.stages = 2 : i32}
    ```
  }];
  let dependentDialects = ["::nsa::tile::TileDialect"];
}

def KeepOperands : Pass<"tile-keep-operands", "::mlir::func::FuncOp"> {
  let summary = "marks products that must leave their right side as it is";
  let description = [{
    The fastest product in which zero annihilates replaces NaN and infinity in its right side by zeros. A product whose right
    side is read again gets `keeps_b`, and leaves it as it is. The right side is read again if another operation may read it
    after the product, if it is the left side too, or if a loop around the product does not copy it anew in each iteration.

    Before:
    ```mlir
    scf.for %i = %first to %past step %one : i32 {
      %sum = tile.dot %weights, %keys, %acc {zero_annihilates} : ...
    }
    ```
    After:
    ```mlir
    scf.for %i = %first to %past step %one : i32 {
      %sum = tile.dot %weights, %keys, %acc {keeps_b, zero_annihilates} : ...
    }
    ```
  }];
}

def InsertBarriers : Pass<"tile-insert-barriers", "::mlir::func::FuncOp"> {
  let summary = "waits for copies before they are read, and keeps threads from overwriting what others read";
  let description = [{
    - One wait serves all copies that follow each other. It is placed before the first operation that reads one of their tiles,
      has an effect on memory, or is a branch or a loop. Reads move behind the wait.
    - A pipelined loop starts its first copies before it waits for earlier ones, which are the oldest group. If only the loop
      reads them, and they stay in shared memory, the loop's own first wait serves.
    - An iteration of a pipelined loop waits for its own group. The barrier there makes the tiles visible to all threads. It
      also guarantees that all threads have left the iteration whose stage the next copies overwrite.
    - An iteration that copies without a ring ends with a barrier, because the next iteration overwrites its tiles.
    - All threads have left a pipelined loop before the first copy behind it is started, because the ring of the loop may hold
      what is copied.
    - A tile that is computed and written to shared memory is read behind a barrier. If other threads may still be reading a
      written tile, there is a barrier before the next one is written too.
    - If a program loads from a tensor and stores to it, there is a barrier between a store and a later load, and between a load
      and a later store. Iterations of a loop follow each other.

    Before:
    ```mlir
    tile.copy %q to %q_buffer rows(%r) { ... } : !tile.view<bf16, 3>, !tile.buffer<tensor<64x64xbf16>>
    %q_tile = tile.read %q_buffer {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<64x64xbf16>>
    %s = tile.dot %q_tile, %k_tile, %zeros {...} : ...
    ```
    After:
    ```mlir
    tile.copy %q to %q_buffer rows(%r) { ... } : !tile.view<bf16, 3>, !tile.buffer<tensor<64x64xbf16>>
    tile.commit_copies
    tile.wait_copies 0
    tile.barrier
    %q_tile = tile.read %q_buffer {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<64x64xbf16>>
    %s = tile.dot %q_tile, %k_tile, %zeros {...} : ...
    ```
  }];
  let dependentDialects = ["::nsa::tile::TileDialect"];
}

def PlanBuffers : Pass<"tile-plan-buffers", "::mlir::func::FuncOp"> {
  let summary = "gives each buffer and each list its place in shared memory";
  let description = [{
    A buffer takes rows x columns x element size bytes, times its stages. A list takes 8 bytes per slot for each of its rows,
    and for four more rows. Lists come first, then buffers in their order, each at the first offset that is free. Offsets are
    multiples of 128 bytes, as the swizzle requires. A total above `limit` is an error that names both numbers.

    Two buffers share bytes if both hold computed tiles, and no tile is alive from the first to the last operation that
    accesses the other. InsertBarriers has placed a barrier before each write that needs one. A tile that is copied behind a
    pipelined loop, in the same block and in no other loop, may lie in the ring of the loop, and so may the ring of a later
    loop. Other buffers that are copied into share no bytes: their copies run ahead of the operations that read them.

    Before:
    ```mlir
    func.func @f(%k: !tile.view<bf16, 3>) {
      %a = tile.buffer : !tile.buffer<tensor<64x64xbf16>>
      %b = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 2>
    ```
    After:
    ```mlir
    func.func @f(%k: !tile.view<bf16, 3>) attributes {tile.shared_bytes = 16384 : i64} {
      %a = tile.buffer {tile.shared_offset = 0 : i64} : !tile.buffer<tensor<64x64xbf16>>
      %b = tile.buffer {tile.shared_offset = 8192 : i64} : !tile.buffer<tensor<32x64xbf16>, 2>
    ```
  }];
  let options = [Option<"limit", "limit", "int64_t", "49152", "bytes of shared memory that a block may use">];
}

#endif // NSA_TILE_PASSES_TD
