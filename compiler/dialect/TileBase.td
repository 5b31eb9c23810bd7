// The `tile` dialect's definition, its types and its enumerations. Operations are in TileOps.td and TileScheduledOps.td.

#ifndef NSA_TILE_BASE_TD
#define NSA_TILE_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let summary = "tiles of attention operators, one program for CPU and GPU";
  let description = [{
    A tile program is one `func.func`. It computes one *block* of an operator's result; `tile.program_id` tells it which
    block. Its values are

    - scalars: `i1`, `i32`, `i64`, `f32`, `f64`;
    - tiles: `tensor<MxNxT>`, `tensor<MxT>` with one value per row, or `tensor<NxT, #tile.column>` with one value per column,
      all of static shape;
    - views: `!tile.view<T, R>` and, in pages, `!tile.view<T, R, P>`: tensors in memory that are arguments;
    - lists: `!tile.top<M, N>`: for each row of a tile the best N columns that it was offered, in memory of the program.

    `arith` and `math` work on scalars, and elementwise on tiles. A tile of `f64` exists only within one elementwise
    expression, for example between `arith.sitofp` and `arith.truncf`: it has no place in registers or in memory. Control flow is `scf.if` and `scf.for`. The dialect
    adds only operations that MLIR lacks: access to memory by rows, the dot product, reductions along columns or rows, the
    best columns of a row, and reports.

    Passes for a GPU lower loads through shared memory to a *scheduled* program. It has more operations, which templates do
    not use: buffers in shared memory, asynchronous copies into them, waits and barriers (TileScheduledOps.td).

    Decisions of the compiler are attributes on operations. So they can be printed, and a test can set them by hand:

    | attribute | on | set by |
    |---|---|---|
    | `tile.warps = W : i32` | function | the template (GPU) |
    | `tile.layout = #tile.layout<..>` | operation with a tile result | AssignLayouts |
    | `tile.stages = S : i32` | `scf.for` | the template |
    | `tile.stay_in_shared = B : i1` | `tile.load` | the template (GPU) |
    | `tile.named` | operation with a scalar result | ExpandStages |
    | `tile.shared_offset = B : i64` | `tile.buffer`, `tile.top_create` | PlanBuffers |
    | `tile.shared_bytes = B : i64` | function | PlanBuffers |
    | `tile.scratch_bytes = B : i64` | function | LowerToCpu |
  }];
  let cppNamespace = "::nsa::tile";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tile_ViewType : TypeDef<Tile_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "a strided array in memory whose rows are addressed by R coordinates";
  let description = [{
    `R` coordinates address one row; the row's columns are contiguous from there. `q` is `!tile.view<bf16, 3>` with the
    coordinates (batch, time, head). A log-sum-exp is `!tile.view<f32, 3>` whose rows hold one element. Strides are
    run-time values, offsets have 64 bits, and a view may be absent (`tile.present`).

    `!tile.view<T, R, P>` lies in pages of `P` rows. Its first coordinate is a sequence, and its second coordinate is a row
    of that sequence. `k` of a paged cache is `!tile.view<bf16, 3, 64>`: the coordinates (sequence, time, head) name the row
    (`table[sequence, time / 64]`, `time % 64`, head) of the pool. The strides of the view are the strides of the pool. The
    table comes with the view and is read only for rows that exist. `P` is any number of rows. 0 means no pages, so one
    text serves both cases: `!tile.view<T, R, ${page}>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType, "unsigned":$rank, DefaultValuedParameter<"int64_t", "0">:$pageRows);
  let assemblyFormat = "`<` $elementType `,` $rank (`,` $pageRows^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isPaged() const { return getPageRows() != 0; }
    bool isGradient() const { return ::llvm::isa<::nsa::tile::GradientType>(getElementType()); }
    /// The element type of the tiles that a store writes.
    ::mlir::Type getStoredType() const;
  }];
}

def Tile_GradientType : TypeDef<Tile_Dialect, "Gradient"> {
  let mnemonic = "gradient";
  let summary = "an element of a result that each call may want as f32, or added to what the memory holds";
  let description = [{
    `!tile.view<!tile.gradient<bf16>, 3>` is a view of bf16 or of f32; the flags of the view say which, and whether a store
    adds. A store takes a tile of f32. What it adds is added in f32, and is rounded once where the elements are bf16. Such
    a view is not loaded from, and has no pages.
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let genVerifyDecl = 1;
}

def Tile_TopType : TypeDef<Tile_Dialect, "Top"> {
  let mnemonic = "top";
  let summary = "for each row the best columns that it was offered, at most `slots` of them";
  let description = [{
    A list is not a value but memory of the program: `tile.top_create` makes it, and `tile.top_insert` changes it.

    Columns are ordered by score, greatest first. Among equal scores the lower column comes first. A column with the score
    -inf never enters a list. A column with the score +inf comes before all numbers, and a column with the score NaN after
    all numbers. This is a total order, so the content of a list does not depend on the order of the offers.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$slots);
  let assemblyFormat = "`<` $rows `,` $slots `>`";
  let genVerifyDecl = 1;
}

def Tile_BufferType : TypeDef<Tile_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "shared memory of a block for one tile, or for a ring of tiles";
  let description = [{
    `!tile.buffer<tensor<64x128xbf16>>` holds one tile. `!tile.buffer<tensor<64x128xbf16>, 3>` is a ring of three *stages*: an
    operation on a ring names the stage that it reads or fills.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile, DefaultValuedParameter<"int64_t", "1">:$stages);
  let assemblyFormat = "`<` $tile (`,` $stages^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isRing() const { return getStages() > 1; }
  }];
}

def Tile_FetchType : TypeDef<Tile_Dialect, "Fetch"> {
  let mnemonic = "fetch";
  let summary = "the copies that a pipelined loop starts ahead of its iterations (made by tile.fetch)";
}

class Tile_TileOf<list<Type> elements, list<int> ranks, string summary>
    : Type<And<[StaticShapeTensorOf<elements>.predicate, HasAnyRankOfPred<ranks>]>, summary, "::mlir::RankedTensorType">;

class Tile_RowTileOf<list<Type> elements, string summary>
    : Type<And<[Tile_TileOf<elements, [1], summary>.predicate, CPred<"!::nsa::tile::isColumnVector($_self)">]>, summary,
           "::mlir::RankedTensorType">;

def Tile_Scalar : AnyTypeOf<[I1, I32, I64, F32, F64, BF16, F16], "i1, i32, i64, f32, f64, bf16 or f16">;
def Tile_AnyTile : Tile_TileOf<[I1, I32, F32, BF16, F16], [1, 2], "tile (static tensor of rank 1 or 2)">;
def Tile_SplatTile : Tile_TileOf<[I1, I32, F32, F64, BF16, F16], [1, 2], "tile, or tile of f64">;
def Tile_Vector : Tile_TileOf<[I1, I32, F32, BF16, F16], [1], "tile of rank 1 (one value per row or per column)">;
def Tile_Matrix : Tile_TileOf<[I1, I32, F32, BF16, F16], [2], "tile of rank 2">;
def Tile_FloatTile : Tile_TileOf<[F32, BF16, F16], [1, 2], "tile of f32, bf16 or f16">;
def Tile_FloatMatrix : Tile_TileOf<[F32, BF16, F16], [2], "tile of rank 2 of f32, bf16 or f16">;
def Tile_F32Matrix : Tile_TileOf<[F32], [2], "tile of rank 2 of f32">;
def Tile_I32RowTile : Tile_RowTileOf<[I32], "tile of rank 1 of i32, one value per row">;
def Tile_F32RowTile : Tile_RowTileOf<[F32], "tile of rank 1 of f32, one value per row">;
def Tile_I32Vector : Tile_TileOf<[I32], [1], "tile of rank 1 of i32">;
def Tile_F32Vector : Tile_TileOf<[F32], [1], "tile of rank 1 of f32">;
def Tile_I32View : Type<And<[CPred<"::llvm::isa<::nsa::tile::ViewType>($_self)">,
    CPred<"::llvm::cast<::nsa::tile::ViewType>($_self).getElementType().isInteger(32)">,
    CPred<"!::llvm::cast<::nsa::tile::ViewType>($_self).isPaged()">]>, "view of i32 without pages", "::nsa::tile::ViewType">;

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def Tile_Axis : I32EnumAttr<"Axis", "an axis of the grid", [
  I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">
]> {
  let cppNamespace = "::nsa::tile";
}

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "what a reduction computes", [
  I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Last", 2, "last">
]> {
  let cppNamespace = "::nsa::tile";
}

def Tile_Layout : I32EnumAttr<"Layout", "where the elements of a tile are", [
  I32EnumAttrCase<"Accumulator", 0, "accumulator">, I32EnumAttrCase<"OperandA", 1, "operand_a">,
  I32EnumAttrCase<"Row", 2, "row">, I32EnumAttrCase<"Shared", 3, "shared">,
  I32EnumAttrCase<"Lanes", 4, "lanes">, I32EnumAttrCase<"RowMajor", 5, "row_major">,
  I32EnumAttrCase<"Column", 6, "column">, I32EnumAttrCase<"Striped", 7, "striped">,
  I32EnumAttrCase<"Uniform", 8, "uniform">
]> {
  let cppNamespace = "::nsa::tile";
  let genSpecializedAttr = 0;
}
def Tile_LayoutAttr : EnumAttr<Tile_Dialect, Tile_Layout, "layout"> {
  let summary = "where the elements of a tile are: a closed set";
  let description = [{
    Layouts of a GPU:

    - `accumulator`: fragments of m16n8, slabs of 16 rows over the warps;
    - `operand_a`: fragments of m16k16, for the left side of a dot in 16-bit types;
    - `row`: one value per row of an accumulator, in the threads that hold the row;
    - `column`: one value per column of an accumulator, in the threads that hold the column;
    - `shared`: swizzled in shared memory, for the right side of a dot, and for its left side in f32;
    - `striped`: each row lies across all threads of the program, 8 neighbouring columns with each thread. A tile with one value
      per column lies as a row does;
    - `uniform`: one value per row of a striped tile, in all threads.

    Layouts of a CPU:

    - `lanes`: rows run along the lanes of vectors, and a column is a contiguous vector. Vectors of one value per row or per
      column are contiguous;
    - `row_major`: for the right side of a dot;
    - `striped`: columns run along the lanes of vectors, and a row is contiguous. So is a vector of one value per column;
    - `uniform`: one value per row of a striped tile, which is read for all lanes. A vector of them is contiguous.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Tile_ColumnAttr : AttrDef<Tile_Dialect, "Column", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "column";
  let summary = "marks a tile of rank 1 that has one value per column";
  let description = [{
    `tensor<32xf32, #tile.column>` has one value for each of 32 columns, and `tensor<32xf32>` one for each of 32 rows. The mark
    is part of the type, so an operation cannot mix the two.
  }];
}

#endif // NSA_TILE_BASE_TD
