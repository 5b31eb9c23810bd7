// Operations of a scheduled program. The GPU passes make them from loads, and compiler/cuda prints each of them as it
// stands. Templates do not use them.

#ifndef NSA_TILE_SCHEDULED_OPS_TD
#define NSA_TILE_SCHEDULED_OPS_TD

include "compiler/dialect/TileOps.td"

//===----------------------------------------------------------------------===//
// Tiles in shared memory
//===----------------------------------------------------------------------===//

def Tile_BufferOp : Tile_Op<"buffer", [MemoryEffects<[MemAlloc]>]> {
  let summary = "shared memory for one tile, or for a ring of tiles";
  let description = [{
    PlanBuffers gives it a place. The memory is not initialised.

    ```mlir
    %k_buffer = tile.buffer {tile.shared_offset = 8192 : i64} : !tile.buffer<tensor<32x64xbf16>, 2>
    ```
  }];
  let results = (outs Tile_BufferType:$buffer);
  let assemblyFormat = "attr-dict `:` qualified(type($buffer))";
}

def Tile_CopyOp : Tile_Op<"copy", [
    MemoryEffects<[MemRead, MemWrite]>, SingleBlock, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "starts to copy a tile from a view to a buffer";
  let description = [{
    `rows`, `columns` and `chunk` have the meanings that they have in `tile.load`. The copy is asynchronous: a thread may read
    what it copied after `tile.commit_copies` and `tile.wait_copies`, and what other threads copied after `tile.barrier`. All
    threads of the block start the copy together.

    ```mlir
    tile.copy %k to %k_buffer[%stage] rows(%r) {
      %time = arith.addi %key, %r : i32
      %exists = arith.cmpi slt, %time, %past : i32
      tile.at [%batch, %time, %head] if %exists
    } columns(72) : !tile.view<bf16, 3>, !tile.buffer<tensor<64x80xbf16>, 2>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Tile_BufferType:$buffer, Optional<I32>:$stage, OptionalAttr<I64Attr>:$columns,
                       Optional<I32>:$chunk, Optional<I32>:$row_columns);
  let regions = (region SizedRegion<1>:$rows);
  let assemblyFormat = [{
    $view `to` $buffer (`[` $stage^ `]`)? custom<Rows>($rows) (`columns` `(` $columns^ `)`)?
    (`chunk` `(` $chunk^ `of` $row_columns `)`)? attr-dict `:` qualified(type($view)) `,` qualified(type($buffer))
  }];
  let extraClassDeclaration = [{
    AtOp getAt();
    /// Which columns are copied.
    TileColumns getTileColumns();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_ReadOp : Tile_Op<"read", [MemoryEffects<[MemRead]>,
    TypesMatchWith<"tile and buffer are of one type", "buffer", "tile", "::llvm::cast<BufferType>($_self).getTile()">]> {
  let summary = "the tile in a buffer";
  let description = [{
    In the layout `shared` the tile stays where it is, and operations on the tile read the buffer. In the layout `operand_a`
    the fragments are loaded into registers here.

    ```mlir
    %k_tile = tile.read %k_buffer[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<32x64xbf16>, 2>
    ```
  }];
  let arguments = (ins Tile_BufferType:$buffer, Optional<I32>:$stage);
  let results = (outs Tile_Matrix:$tile);
  let assemblyFormat = "$buffer (`[` $stage^ `]`)? attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Tile_WriteOp : Tile_Op<"write", [MemoryEffects<[MemWrite]>,
    TypesMatchWith<"tile and buffer are of one type", "buffer", "tile", "::llvm::cast<BufferType>($_self).getTile()">]> {
  let summary = "writes a computed tile from registers to a buffer";
  let description = [{
    Each thread writes its own elements, so other threads may read the tile after `tile.barrier`.

    ```mlir
    tile.write %weights to %weights_buffer : !tile.buffer<tensor<32x64xbf16>>
    ```
  }];
  let arguments = (ins Tile_Matrix:$tile, Tile_BufferType:$buffer);
  let assemblyFormat = "$tile `to` $buffer attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Tile_WritePartialsOp : Tile_Op<"write_partials", [MemoryEffects<[MemWrite]>]> {
  let summary = "reduces what each warp holds of a column or of a row, and writes the result to a buffer";
  let description = [{
    The first half of a `tile.reduce` of what several warps hold: the columns of an accumulator, or the rows of a striped tile.
    For columns the buffer has at least a row for each warp. For rows it has at least a row for each row, with an element for
    each warp.

    ```mlir
    tile.write_partials add %weights to %partials : tensor<64x32xf32>, !tile.buffer<tensor<8x32xf32>>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_F32Matrix:$source, Tile_BufferType:$buffer);
  let assemblyFormat = "$kind $source `to` $buffer attr-dict `:` type($source) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Tile_ReadPartialsOp : Tile_Op<"read_partials", [MemoryEffects<[MemRead]>]> {
  let summary = "combines what the warps wrote, in the order of the warps";
  let description = [{
    The second half of a `tile.reduce` of what several warps hold.

    ```mlir
    %sums = tile.read_partials add %partials : !tile.buffer<tensor<8x32xf32>> -> tensor<32xf32, #tile.column>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_BufferType:$buffer);
  let results = (outs Tile_F32Vector:$result);
  let assemblyFormat = "$kind $buffer attr-dict `:` qualified(type($buffer)) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Waits and barriers
//===----------------------------------------------------------------------===//

def Tile_CommitCopiesOp : Tile_Op<"commit_copies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "makes one group of all copies that were started since the group before";
  let description = [{
    A group may be empty, so the groups of a loop can be counted.
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_WaitCopiesOp : Tile_Op<"wait_copies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until a thread's own copies are complete, but for the newest groups";
  let description = [{
    ```mlir
    tile.wait_copies 1    // the newest group may still be under way
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$newest);
  let assemblyFormat = "$newest attr-dict";
}

def Tile_BarrierOp : Tile_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until all threads of the block are here; what each wrote to shared memory is then visible to all";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Tile_SumOperandOp : Tile_Op<"sum_operand", [Pure, LayoutOpInterface]> {
  let summary = "the sum of each row of a left operand, on tensor cores (made by SumOperands)";
  let description = [{
    The sums are the product of the operand with ones, in f32. Each element is exact in the product.

    ```mlir
    %sums = tile.sum_operand %weights : tensor<64x32xbf16> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_TileOf<[BF16, F16], [2], "tile of rank 2 of bf16 or f16">:$operand);
  let results = (outs Tile_F32RowTile:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Pipelined loops
//===----------------------------------------------------------------------===//

def Tile_FetchOp : Tile_Op<"fetch", [
    MemoryEffects<[MemRead, MemWrite]>, SingleBlock, NoTerminator, AllTypesMatch<["lower", "upper", "step"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "starts the copies of the first iterations of a pipelined loop, and says how those of a later one start";
  let description = [{
    The region starts the copies of one iteration. Its arguments are the induction variable of that iteration and the stage that
    the copies fill; besides copies it holds the scalar code on which they depend. `tile.fetch` stands before its loop, has
    the loop's bounds, and starts the copies of the first `stages` - 1 iterations, a group for each of them. A group is empty
    if the loop has no such iteration. `tile.fetch_ahead` in the loop starts the copies of later iterations.

    ```mlir
    %fetch = tile.fetch %first to %past step %key_tile stages(2) : i32 (%key, %stage) {
      tile.copy %k to %k_buffer[%stage] rows(%r) { ... } : !tile.view<bf16, 3>, !tile.buffer<tensor<32x64xbf16>, 2>
    }
    ```
  }];
  let arguments = (ins AnySignlessInteger:$lower, AnySignlessInteger:$upper, AnySignlessInteger:$step,
                       ConfinedAttr<I64Attr, [IntMinValue<2>]>:$stages);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Tile_FetchType:$fetch);
  let assemblyFormat = [{
    $lower `to` $upper `step` $step `stages` `(` $stages `)` `:` custom<FetchBody>(type($lower), $body) attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getIndex() { return getBody().getArgument(0); }
    ::mlir::BlockArgument getStage() { return getBody().getArgument(1); }
  }];
  let hasRegionVerifier = 1;
}

def Tile_FetchAheadOp : Tile_Op<"fetch_ahead", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "starts the copies of the iteration that runs `stages` - 1 iterations later";
  let description = [{
    It stands in the body of the pipelined loop. The result is the stage that this iteration reads. The copies fill the stage
    that the iteration before has read, so all threads must have left that iteration. Nothing is started for an iteration
    that the loop does not have.

    ```mlir
    %stage = tile.fetch_ahead %fetch at %key : i32
    ```
  }];
  let arguments = (ins Tile_FetchType:$fetch, AnySignlessInteger:$index);
  let results = (outs I32:$stage);
  let assemblyFormat = "$fetch `at` $index attr-dict `:` type($index)";
  let extraClassDeclaration = [{
    FetchOp getFetchOp();
  }];
  let hasVerifier = 1;
}

#endif // NSA_TILE_SCHEDULED_OPS_TD
