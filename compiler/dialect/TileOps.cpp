#include "compiler/dialect/RowAccess.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace nsa::tile;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

// rows(%r) { ... }
static ParseResult parseRows(OpAsmParser &parser, Region &rows) {
  OpAsmParser::Argument row;
  if (parser.parseKeyword("rows") || parser.parseLParen() || parser.parseArgument(row) || parser.parseRParen())
    return failure();
  row.type = parser.getBuilder().getI32Type();
  return parser.parseRegion(rows, row);
}

static void printRows(OpAsmPrinter &printer, Operation *, Region &rows) {
  printer << "rows(" << rows.getArgument(0) << ") ";
  printer.printRegion(rows, /*printEntryBlockArgs=*/false);
}

// rows(%r) { ... }, or rows(%r, %place of %places : tensor<64xi32>) { ... }
static ParseResult parsePlacedRows(OpAsmParser &parser, Region &rows,
                                   std::optional<OpAsmParser::UnresolvedOperand> &places, Type &placesType) {
  SmallVector<OpAsmParser::Argument, 2> arguments(1);
  if (parser.parseKeyword("rows") || parser.parseLParen() || parser.parseArgument(arguments[0]))
    return failure();
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseArgument(arguments.emplace_back()) || parser.parseKeyword("of") ||
       parser.parseOperand(places.emplace()) || parser.parseColonType(placesType)))
    return failure();
  if (parser.parseRParen())
    return failure();
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = parser.getBuilder().getI32Type();
  return parser.parseRegion(rows, arguments);
}

static void printPlacedRows(OpAsmPrinter &printer, Operation *op, Region &rows, Value places, Type placesType) {
  if (!places)
    return printRows(printer, op, rows);
  printer << "rows(" << rows.getArgument(0) << ", " << rows.getArgument(1) << " of " << places << " : " << placesType
          << ") ";
  printer.printRegion(rows, /*printEntryBlockArgs=*/false);
}

// The element has the element type of the view, so only the type of the view is written.
static ParseResult parseViewAndElement(OpAsmParser &parser, Type &view, Type &element) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(view))
    return failure();
  auto type = dyn_cast<ViewType>(view);
  if (!type)
    return parser.emitError(loc, "expected a !tile.view");
  element = type.getElementType();
  return success();
}

static void printViewAndElement(OpAsmPrinter &printer, Operation *, Type view, Type) { printer << view; }

// i32 (%key, %stage) { ... }
static ParseResult parseFetchBody(OpAsmParser &parser, Type &indexType, Region &body) {
  SmallVector<OpAsmParser::Argument, 2> arguments(2);
  if (parser.parseType(indexType) || parser.parseLParen() || parser.parseArgument(arguments[0]) ||
      parser.parseComma() || parser.parseArgument(arguments[1]) || parser.parseRParen())
    return failure();
  arguments[0].type = indexType;
  arguments[1].type = parser.getBuilder().getI32Type();
  return parser.parseRegion(body, arguments);
}

static void printFetchBody(OpAsmPrinter &printer, Operation *, Type indexType, Region &body) {
  printer << indexType << " (" << body.getArgument(0) << ", " << body.getArgument(1) << ") ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

#define GET_OP_CLASSES
#include "compiler/dialect/TileOps.cpp.inc"

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> operandTypes;
  SMLoc loc = parser.getCurrentLocation();
  auto parseInput = [&]() -> ParseResult {
    if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) || parser.parseColonType(operandTypes.emplace_back()))
      return failure();
    arguments.back().type = getElementTypeOrSelf(operandTypes.back());
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseInput) || parser.parseKeyword("at") ||
      parser.parseLParen())
    return failure();
  Type i32 = parser.getBuilder().getI32Type();
  OpAsmParser::Argument row, column;
  if (parser.parseArgument(row) || parser.parseComma() || parser.parseArgument(column) || parser.parseRParen())
    return failure();
  row.type = column.type = i32;
  arguments.append({row, column});
  if (parser.parseArrowTypeList(result.types) || parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(operands, operandTypes, loc, result.operands))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments, /*enableNameShadowing=*/true);
}

void MapOp::print(OpAsmPrinter &printer) {
  printer << "(";
  llvm::interleaveComma(llvm::zip(getElements(), getInputs()), printer, [&](auto pair) {
    auto [element, input] = pair;
    printer << element << " = " << input << " : " << input.getType();
  });
  printer << ") at (" << getRow() << ", " << getColumn() << ") -> " << getResult().getType();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void LoadOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setName(region.getArgument(0), "row");
}
void StoreOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setName(region.getArgument(0), "row");
  if (getPlaces())
    setName(region.getArgument(1), "place");
}

void MapOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setName(getRow(), "row");
  setName(getColumn(), "column");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult LoadScalarOp::verify() {
  if (getCoordinates().size() != getView().getType().getRank())
    return emitOpError() << "has " << getCoordinates().size() << " coordinates for a view of "
                         << getView().getType().getRank();
  if (getType() != getView().getType().getElementType())
    return emitOpError() << "gives " << getType() << " from a view of " << getView().getType().getElementType();
  return success();
}

LogicalResult LoadOp::verify() { return verifyRowAccess(*this, getType()); }
LogicalResult LoadOp::verifyRegions() { return verifyRows(*this, getRows(), getView().getType()); }
AtOp LoadOp::getAt() { return cast<AtOp>(getRows().front().getTerminator()); }
TileColumns LoadOp::getTileColumns() { return tileColumns(*this, getType()); }

LogicalResult StoreOp::verify() {
  auto tile = cast<RankedTensorType>(getTile().getType());
  if (getPlaces()) {
    // A tile of rank 1 may also have a place for each column.
    auto places = cast<RankedTensorType>(getPlaces().getType());
    const bool fits = tile.getRank() == 1 ? places.clone(tile.getElementType()) == tile
                                          : places.getDimSize(0) == tile.getDimSize(0) && !isColumnVector(places);
    if (!fits)
      return emitOpError() << "has places " << places << " for the rows of " << tile << "; each row has one";
  }
  return verifyRowAccess(*this, tile);
}
LogicalResult StoreOp::verifyRegions() {
  return verifyRows(*this, getRows(), getView().getType(), getPlaces() != nullptr);
}
AtOp StoreOp::getAt() { return cast<AtOp>(getRows().front().getTerminator()); }
TileColumns StoreOp::getTileColumns() { return tileColumns(*this, getTile().getType()); }

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  if (getDimension() >= static_cast<uint64_t>(rank))
    return emitOpError() << "has dimension " << getDimension() << " of a tile of rank " << rank;
  return success();
}

// The size of a matrix along the dimension in which a vector has one value each: its rows, or its columns.
static int64_t sizeAlong(RankedTensorType matrix, Type vector) {
  return matrix.getDimSize(isColumnVector(vector) ? 1 : 0);
}

static StringRef dimensionOf(Type vector) { return isColumnVector(vector) ? " columns" : " rows"; }

LogicalResult BroadcastOp::verify() {
  auto vector = cast<RankedTensorType>(getVector().getType());
  auto result = cast<RankedTensorType>(getType());
  if (vector.getDimSize(0) != sizeAlong(result, vector))
    return emitOpError() << "has " << vector.getDimSize(0) << " values for " << sizeAlong(result, vector)
                         << dimensionOf(vector);
  if (vector.getElementType() != result.getElementType())
    return emitOpError() << "makes " << result.getElementType() << " from " << vector.getElementType();
  return success();
}

LogicalResult CastOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (source.clone(result.getElementType()) != result)
    return emitOpError() << "changes the shape: " << source << " to " << result;
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType());
  auto b = cast<RankedTensorType>(getB().getType());
  auto result = cast<RankedTensorType>(getType());
  int64_t depth = b.getDimSize(getTransposeB() ? 1 : 0);
  int64_t columns = b.getDimSize(getTransposeB() ? 0 : 1);
  if (getFrom() && getRightRows() <= b.getDimSize(0))
    (getTransposeB() ? columns : depth) = getRightRows();
  if (getDepth() != depth)
    return emitOpError() << "sums over " << getDepth() << (getTransposeA() ? " rows" : " columns") << " of a, but over "
                         << depth << " of b" << (getTransposeB() ? " (transposed)" : "");
  int64_t rows = a.getDimSize(getTransposeA() ? 1 : 0);
  if (result.getDimSize(0) != rows || result.getDimSize(1) != columns)
    return emitOpError() << "makes " << rows << "x" << columns << ", but its accumulator is " << result;
  if (getWhere() && !getZeroAnnihilates())
    return emitOpError("says where zero annihilates, but not that it does");
  return success();
}

int64_t DotOp::getDepth() { return cast<RankedTensorType>(getA().getType()).getDimSize(getTransposeA() ? 0 : 1); }

int64_t DotOp::getRightRows() { return getTransposeB() ? cast<RankedTensorType>(getType()).getDimSize(1) : getDepth(); }

LogicalResult ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (sizeAlong(source, result) != result.getDimSize(0))
    return emitOpError() << "gives " << result.getDimSize(0) << " values for " << sizeAlong(source, result)
                         << dimensionOf(result);
  if (getKind() == ReduceKind::Last && isColumnVector(result))
    return emitOpError("keeps the last column, which has one value per row");
  return success();
}

LogicalResult ShiftOp::verify() {
  auto first = cast<RankedTensorType>(getFirst().getType());
  auto result = cast<RankedTensorType>(getType());
  if (first.getDimSize(0) != result.getDimSize(0))
    return emitOpError() << "has " << first.getDimSize(0) << " values for the first column of " << result.getDimSize(0)
                         << " rows";
  return success();
}

Value MapOp::getYielded() { return cast<YieldOp>(getBody().front().getTerminator()).getElement(); }

LogicalResult MapOp::verify() {
  auto result = cast<RankedTensorType>(getType());
  for (Value input : getInputs()) {
    auto tile = dyn_cast<RankedTensorType>(input.getType());
    if (!tile || tile.clone(result.getElementType()) == result)
      continue;
    if (tile.getRank() != 1 || result.getRank() != 2 || tile.getDimSize(0) != sizeAlong(result, tile))
      return emitOpError() << "has an input " << tile
                           << " that is neither of the result's shape nor one value per row or column of " << result;
  }
  return success();
}

LogicalResult MapOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size() + 2 || !getRow().getType().isInteger(32) ||
      !getColumn().getType().isInteger(32))
    return emitOpError("has a region of one argument per input and two more, the i32 row and column");
  for (auto [element, input] : llvm::zip(getElements(), getInputs()))
    if (element.getType() != getElementTypeOrSelf(input.getType()))
      return emitOpError() << "has an argument of " << element.getType() << " for an input of " << input.getType();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return emitOpError("has a region that ends in tile.yield");
  if (yield.getElement().getType() != getElementTypeOrSelf(getType()))
    return emitOpError() << "yields " << yield.getElement().getType() << " for a result of " << getType();
  for (Operation &nested : block) {
    bool scalar = llvm::none_of(nested.getResultTypes(), llvm::IsaPred<ShapedType>);
    if (!scalar || !isMemoryEffectFree(&nested))
      return nested.emitOpError("cannot stand in a map: only scalar code without side effects can");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Best columns
//===----------------------------------------------------------------------===//

// The memory of a list is known only at its tile.top_create.
static LogicalResult verifyLists(Operation *op, Value lists, Type rows) {
  int64_t listed = cast<TopType>(lists.getType()).getRows(), given = cast<RankedTensorType>(rows).getDimSize(0);
  if (listed != given)
    return op->emitOpError() << "has the lists of " << listed << " rows for a tile of " << given;
  if (!lists.getDefiningOp<TopCreateOp>())
    return op->emitOpError("works on lists that tile.top_create made");
  return success();
}

LogicalResult TopInsertOp::verify() { return verifyLists(*this, getLists(), getScores().getType()); }

LogicalResult TopNextOp::verify() { return verifyLists(*this, getLists(), getType()); }
