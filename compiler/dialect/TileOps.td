// Operations of the `tile` dialect. docs/tile_reference.md is generated from here.

#ifndef NSA_TILE_OPS_TD
#define NSA_TILE_OPS_TD

include "compiler/dialect/TileBase.td"
include "compiler/dialect/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

// Operations whose demands or offers for layouts are not the default ones. TileLayouts.cpp has them.
def Tile_DemandsLayout : DeclareOpInterfaceMethods<LayoutOpInterface, ["getOperandLayout"]>;
def Tile_OffersLayout : DeclareOpInterfaceMethods<LayoutOpInterface, ["offersLayout"]>;

//===----------------------------------------------------------------------===//
// Program and arguments
//===----------------------------------------------------------------------===//

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "index of this program in the grid";
  let description = [{
    ```mlir
    %block = tile.program_id x
    ```
  }];
  let arguments = (ins Tile_Axis:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_PresentOp : Tile_Op<"present", [Pure]> {
  let summary = "whether the caller passed this tensor";
  let description = [{
    ```mlir
    %wanted = tile.present %lse : !tile.view<f32, 3>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view);
  let results = (outs I1:$result);
  let assemblyFormat = "$view attr-dict `:` qualified(type($view))";
}

def Tile_LoadScalarOp : Tile_Op<"load_scalar", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "one element of a view";
  let description = [{
    The first element of the row at these coordinates, one for each dimension of the view. The address must be valid. With
    `if`, the element is zero where the condition is false, and memory is not touched there.

    ```mlir
    %begin = tile.load_scalar %cu_seqlens_q[%batch] : !tile.view<i32, 1>
    %query = tile.load_scalar %listing[%pair] if %exists : !tile.view<i32, 1>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<I32>:$coordinates, Optional<I1>:$exists);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = [{
    $view `[` $coordinates `]` (`if` $exists^)? attr-dict `:` custom<ViewAndElement>(type($view), type($result))
  }];
  let hasVerifier = 1;
}

def Tile_ReportOp : Tile_Op<"report", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "reports malformed input that only the device can see";
  let description = [{
    If `bad`, and if no program reported before: `status[0] = code`, `status[1] = place`. The code must not be 0.

    ```mlir
    tile.report %bad, %code, %batch to %status : !tile.view<i32, 1>
    ```
  }];
  let arguments = (ins I1:$bad, I32:$code, I32:$place, Tile_I32View:$status);
  let assemblyFormat = "$bad `,` $code `,` $place `to` $status attr-dict `:` qualified(type($status))";
}

//===----------------------------------------------------------------------===//
// Memory by rows
//===----------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load", [
    MemoryEffects<[MemRead]>, SingleBlock, AttrSizedOperandSegments, Tile_OffersLayout,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a tile whose rows lie anywhere in a view";
  let description = [{
    The region is scalar code. Its argument is the number of the row. It ends with `tile.at`, which gives the coordinates of
    the row and whether the row exists. A row that does not exist is zero, and memory is not touched for it. Columns from
    `columns` on are zero too, and are not read. By default all columns of the tile are read.

    ```mlir
    %keys = tile.load %k rows(%r) {
      %time = arith.addi %first, %r : i32
      %exists = arith.cmpi slt, %time, %past : i32
      tile.at [%batch, %time, %head] if %exists
    } columns(72) : !tile.view<bf16, 3> -> tensor<64x80xbf16>
    ```

    A tile of rank 1 gets one element from each row: the value of a row of the tile, or with `#tile.column` the value of a
    column.

    `chunk(%n of %columns)`: the row has `%columns` columns and may be wider than the tile. The tile is chunk number `%n` of
    the row; a chunk is as wide as the tile. Columns of the chunk behind the end of the row are zero and are not read. `%n` is
    not negative, and the chunk begins within the row.

    ```mlir
    %weights = tile.load %w rows(%r) {
      %exists = arith.cmpi slt, %r, %inputs : i32
      tile.at [%r] if %exists
    } chunk(%n of %outputs) : !tile.view<bf16, 1> -> tensor<64x32xbf16>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, OptionalAttr<I64Attr>:$columns, Optional<I32>:$chunk,
                       Optional<I32>:$row_columns);
  let regions = (region SizedRegion<1>:$rows);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = [{
    $view custom<Rows>($rows) (`columns` `(` $columns^ `)`)? (`chunk` `(` $chunk^ `of` $row_columns `)`)? attr-dict
    `:` qualified(type($view)) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The i32 argument of the region: the number of the row in the tile.
    ::mlir::BlockArgument getRow() { return getRows().getArgument(0); }
    AtOp getAt();
    /// Which columns are read.
    TileColumns getTileColumns();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [
    MemoryEffects<[MemWrite]>, SingleBlock, AttrSizedOperandSegments, LayoutOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "writes the rows of a tile anywhere in a view";
  let description = [{
    The reverse of `tile.load`. Rows that do not exist by their `tile.at`, and columns that `columns` or `chunk` exclude, are
    not written. A tile of rank 1 stores one element per row.

    ```mlir
    tile.store %result, %out rows(%r) {
      %time = arith.addi %first, %r : i32
      %exists = arith.cmpi slt, %time, %past : i32
      tile.at [%batch, %time, %head] if %exists
    } columns(72) : tensor<64x80xbf16>, !tile.view<bf16, 3>
    ```

    The places of the rows may depend on a tile of rank 1. The region then has the row's element of this tile as a second
    argument.

    ```mlir
    tile.store %block, %list rows(%r, %place of %places : tensor<64xi32>) {
      %exists = arith.cmpi slt, %place, %slots : i32
      tile.at [%batch, %place] if %exists
    } : tensor<64xi32>, !tile.view<i32, 2>
    ```
  }];
  let arguments = (ins Tile_AnyTile:$tile, Tile_ViewType:$view, OptionalAttr<I64Attr>:$columns, Optional<I32>:$chunk,
                       Optional<I32>:$row_columns, Optional<Tile_I32Vector>:$places);
  let regions = (region SizedRegion<1>:$rows);
  let assemblyFormat = [{
    $tile `,` $view custom<PlacedRows>($rows, $places, type($places)) (`columns` `(` $columns^ `)`)?
    (`chunk` `(` $chunk^ `of` $row_columns `)`)? attr-dict `:` type($tile) `,` qualified(type($view))
  }];
  let extraClassDeclaration = [{
    /// The i32 argument of the region: the number of the row in the tile.
    ::mlir::BlockArgument getRow() { return getRows().getArgument(0); }
    AtOp getAt();
    /// Which columns are written.
    TileColumns getTileColumns();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_AtOp : Tile_Op<"at", [Pure, Terminator, ParentOneOf<["LoadOp", "StoreOp", "CopyOp"]>]> {
  let summary = "where a row lies and whether it exists: ends the region of a load, a store or a copy";
  let arguments = (ins Variadic<I32>:$coordinates, I1:$exists);
  let assemblyFormat = "` ` `[` $coordinates `]` `if` $exists attr-dict";
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "the index along a dimension";
  let description = [{
    ```mlir
    %column = tile.iota 1 : tensor<64x64xi32>
    ```
  }];
  let arguments = (ins I64Attr:$dimension);
  let results = (outs Tile_TileOf<[I32], [1, 2], "tile of i32">:$result);
  let assemblyFormat = "$dimension attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure, LayoutOpInterface,
    TypesMatchWith<"scalar has the tile's element type", "result", "scalar", "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "a scalar as every element of a tile";
  let description = [{
    ```mlir
    %zeros = tile.splat %zero : tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_Scalar:$scalar);
  let results = (outs Tile_SplatTile:$result);
  let assemblyFormat = "$scalar attr-dict `:` type($result)";
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "one value per row to all columns of the row, or one value per column to all rows";
  let description = [{
    ```mlir
    %scale = tile.broadcast %row : tensor<64xf32> -> tensor<64x128xf32>
    %lse = tile.broadcast %column : tensor<128xf32, #tile.column> -> tensor<64x128xf32>
    ```
  }];
  let arguments = (ins Tile_Vector:$vector);
  let results = (outs Tile_Matrix:$result);
  let assemblyFormat = "$vector attr-dict `:` type($vector) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_CastOp : Tile_Op<"cast", [Pure]> {
  let summary = "the same tile in another float type, rounded to nearest even";
  let description = [{
    ```mlir
    %p = tile.cast %weights : tensor<64x64xf32> -> tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins Tile_FloatTile:$source);
  let results = (outs Tile_FloatTile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AttrSizedOperandSegments, Tile_DemandsLayout,
    TypesMatchWith<"accumulator and result are of one type", "result", "acc", "$_self">]> {
  let summary = "acc + a b, accumulated in f32; either side may be given transposed";
  let description = [{
    - `transpose_a`: `a` is given as KxM.
    - `transpose_b`: `b` is given as NxK.
    - `zero_annihilates`: an element of `a` that is zero contributes zero whatever `b` holds, NaN and Inf included. Other
      elements of `a` contribute as in a plain product.
    - `where`: a condition with the same value in the whole program. If it is false, a target may compute the plain product
      instead of one in which zero annihilates.
    - `keeps_b`: `b` is read again (set by KeepOperands). Without it, a product in which zero annihilates may change `b`.
    - `from`: the first row of `b` that the product reads, a multiple of 8. The product may end before the last row of `b`.
      So several products share a tile that was loaded once.

    ```mlir
    %scores = tile.dot %queries, %keys, %zeros {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16> -> tensor<64x32xf32>
    %part = tile.dot %queries, %all, %zeros from %row {transpose_b} : tensor<64x64xbf16>, tensor<128x64xbf16> -> tensor<64x32xf32>
    %sums = tile.dot %weights, %keys, %acc {transpose_a} : tensor<32x64xbf16>, tensor<32x128xbf16> -> tensor<64x128xf32>
    ```
  }];
  let arguments = (ins Tile_FloatMatrix:$a, Tile_FloatMatrix:$b, Tile_F32Matrix:$acc, Optional<I32>:$from,
                       Optional<I1>:$where, UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       UnitAttr:$zero_annihilates, UnitAttr:$keeps_b);
  let results = (outs Tile_F32Matrix:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`from` $from^)? (`where` $where^)? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The number of products that are summed.
    int64_t getDepth();
    /// The number of rows of `b` that a product reads.
    int64_t getRightRows();
  }];
  let hasVerifier = 1;
}

def Tile_ConvertLayoutOp : Tile_Op<"convert_layout", [Pure, Tile_OffersLayout,
    TypesMatchWith<"source and result are of one type", "result", "source", "$_self">]> {
  let summary = "a computed tile in memory, where a dot can read it (made by AssignLayouts)";
  let description = [{
    A dot reads its right side, and a left side that is given transposed, from memory. On a GPU this is shared memory, in the
    layout `shared`; on a CPU it is the layout `row_major`.

    ```mlir
    %weights_read = tile.convert_layout %weights {tile.layout = #tile.layout<shared>} : tensor<32x64xbf16>
    ```
  }];
  let arguments = (ins Tile_Matrix:$source);
  let results = (outs Tile_Matrix:$result);
  let assemblyFormat = "$source attr-dict `:` type($result)";
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, LayoutOpInterface]> {
  let summary = "maximum or sum along the columns or along the rows, or the last column";
  let description = [{
    A result with one value per row is reduced along the columns, and a result with one value per column along the rows. Each
    target adds in an order of its own, which is fixed. It is not specified whether a maximum keeps or drops NaN.

    ```mlir
    %m = tile.reduce max %scores : tensor<64x32xf32> -> tensor<64xf32>
    %sums = tile.reduce add %weights : tensor<64x32xf32> -> tensor<32xf32, #tile.column>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_F32Matrix:$source);
  let results = (outs Tile_F32Vector:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ShiftOp : Tile_Op<"shift", [Pure, LayoutOpInterface,
    TypesMatchWith<"source and result are of one type", "result", "source", "$_self">]> {
  let summary = "moves every column one to the right and inserts a new first column";
  let description = [{
    The last column is dropped. `tile.reduce last` keeps it for the next tile.

    ```mlir
    %moved = tile.shift %x, %first : tensor<64xf32> -> tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Tile_F32Matrix:$source, Tile_F32RowTile:$first);
  let results = (outs Tile_F32Matrix:$result);
  let assemblyFormat = "$source `,` $first attr-dict `:` type($first) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [Pure, IsolatedFromAbove, SingleBlock, Tile_OffersLayout,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "one elementwise expression (made by FuseElementwise)";
  let description = [{
    The region computes one element. Its arguments are one scalar for each input, and the row and the column of the element.
    Inputs are tiles of the result's shape, tiles of rank 1 (which give the value of the row or of the column), and scalars.
    The region uses no other value from outside. The column of a result with one value per row is 0, and so is the row of a
    result with one value per column.

    ```mlir
    %p = tile.map(%s = %scores : tensor<64x32xf32>, %m = %row_max : tensor<64xf32>) at (%row, %column) -> tensor<64x32xf32> {
      %0 = arith.subf %s, %m : f32
      %1 = math.exp2 %0 : f32
      tile.yield %1 : f32
    }
    ```
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Tile_AnyTile, Tile_Scalar]>>:$inputs);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Tile_AnyTile:$result);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The arguments for one element of each input, in the order of the inputs.
    ::mlir::Block::BlockArgListType getElements() { return getBody().getArguments().drop_back(2); }
    ::mlir::BlockArgument getRow() { return getBody().getArgument(getInputs().size()); }
    ::mlir::BlockArgument getColumn() { return getBody().getArgument(getInputs().size() + 1); }
    ::mlir::Value getYielded();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, HasParent<"MapOp">]> {
  let summary = "the element that a map computes";
  let arguments = (ins Tile_Scalar:$element);
  let assemblyFormat = "$element attr-dict `:` type($element)";
}

//===----------------------------------------------------------------------===//
// Best columns
//===----------------------------------------------------------------------===//

def Tile_TopCreateOp : Tile_Op<"top_create", [MemoryEffects<[MemAlloc, MemWrite]>]> {
  let summary = "an empty list of best columns for each row";
  let description = [{
    ```mlir
    %best = tile.top_create : !tile.top<64, 16>
    ```
  }];
  let results = (outs Tile_TopType:$lists);
  let assemblyFormat = "attr-dict `:` qualified(type($lists))";
}

def Tile_TopInsertOp : Tile_Op<"top_insert", [MemoryEffects<[MemRead, MemWrite]>, LayoutOpInterface]> {
  let summary = "offers the columns of a tile to the lists of its rows";
  let description = [{
    Column c of the tile has the number `first` + c in its row. The numbers are not negative, and each is offered once.

    ```mlir
    tile.top_insert %scores at %first into %best : tensor<64x32xf32>, !tile.top<64, 16>
    ```
  }];
  let arguments = (ins Tile_F32Matrix:$scores, I32:$first, Tile_TopType:$lists);
  let assemblyFormat = "$scores `at` $first `into` $lists attr-dict `:` type($scores) `,` qualified(type($lists))";
  let hasVerifier = 1;
}

def Tile_TopNextOp : Tile_Op<"top_next", [MemoryEffects<[MemRead]>, LayoutOpInterface,
    TypesMatchWith<"columns before and after are of one type", "column", "after", "$_self">]> {
  let summary = "for each row the lowest listed column after a given one";
  let description = [{
    The result is the largest i32 if no column is left. A loop that starts after -1 gets the columns in ascending order.

    ```mlir
    %block = tile.top_next %best after %previous : !tile.top<64, 16> -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_TopType:$lists, Tile_I32RowTile:$after);
  let results = (outs Tile_I32RowTile:$column);
  let assemblyFormat = "$lists `after` $after attr-dict `:` qualified(type($lists)) `->` type($column)";
  let hasVerifier = 1;
}

#endif // NSA_TILE_OPS_TD
