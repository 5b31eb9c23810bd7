#include "compiler/dialect/Tile.h"

#include "runtime/base/problem.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace nsa::tile;

#include "compiler/dialect/TileDialect.cpp.inc"
#include "compiler/dialect/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/TileAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/TileOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/TileTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/TileAttributes.cpp.inc"
      >();
}

LogicalResult ViewType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type elementType, unsigned rank,
                               int64_t pageRows) {
  const bool isGradient = isa<GradientType>(elementType);
  if (!isGradient && !elementType.isF32() && !elementType.isF16() && !elementType.isBF16() &&
      !elementType.isInteger(32))
    return emitError() << "a view's elements are f32, f16, bf16, i32 or gradients, not " << elementType;
  if (isGradient && pageRows != 0)
    return emitError() << "a view of gradients has no pages";
  if (rank < 1 || rank > 4)
    return emitError() << "a view has 1 to 4 coordinates, not " << rank;
  if (pageRows < 0 || pageRows > std::numeric_limits<int32_t>::max())
    return emitError() << "a page has 1 to 2147483647 rows (0: no pages), not " << pageRows;
  if (pageRows != 0 && rank < 2)
    return emitError() << "a view of pages has at least 2 coordinates, the sequence and the row, not " << rank;
  return success();
}

Type ViewType::getStoredType() const { return isGradient() ? Float32Type::get(getContext()) : getElementType(); }

LogicalResult GradientType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type elementType) {
  if (!elementType.isF32() && !elementType.isF16() && !elementType.isBF16())
    return emitError() << "a gradient is f32, f16 or bf16, not " << elementType;
  return success();
}

LogicalResult ColumnAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 1)
    return emitError() << "#tile.column marks a tile of rank 1, not of rank " << shape.size();
  return success();
}

LogicalResult TopType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t slots) {
  if (rows < 1)
    return emitError() << "lists are of at least one row, not " << rows;
  constexpr int64_t kMostSlots = nsa::Spec::kMostSelCount;
  if (slots < 1 || slots > kMostSlots)
    return emitError() << "a list has 1 to " << kMostSlots << " slots, not " << slots;
  return success();
}

LogicalResult BufferType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, RankedTensorType tile,
                                 int64_t stages) {
  Type element = tile.getElementType();
  if (tile.getRank() != 2 || !tile.hasStaticShape() ||
      !(element.isF32() || element.isF16() || element.isBF16() || element.isInteger(32)))
    return emitError() << "a buffer holds tiles of rank 2 of f32, f16, bf16 or i32, not " << tile;
  if (stages < 1)
    return emitError() << "a buffer has at least one stage, not " << stages;
  return success();
}

// Checks an integer attribute: it has `bits` bits, is at least `least`, and is on an operation for which `isOwner` is
// true.
static LogicalResult verifyInteger(Operation *op, NamedAttribute attribute, bool isOwner, StringRef owner,
                                   unsigned bits, int64_t least) {
  StringRef name = attribute.getName().getValue();
  if (!isOwner)
    return op->emitOpError() << "'" << name << "' belongs on " << owner;
  auto value = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!value || !value.getType().isInteger(bits) || value.getInt() < least)
    return op->emitOpError() << "'" << name << "' is an i" << bits << " of at least " << least << ", not "
                             << attribute.getValue();
  return success();
}

// Attributes that record decisions may be written by hand, so they are checked like any other input.
LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == kWarpsAttr)
    return verifyInteger(op, attribute, isa<FunctionOpInterface>(op), "a function", 32, 1);
  if (name == kSharedBytesAttr || name == kScratchBytesAttr)
    return verifyInteger(op, attribute, isa<FunctionOpInterface>(op), "a function", 64, 0);
  if (name == kStagesAttr)
    return verifyInteger(op, attribute, isa<scf::ForOp>(op), "an scf.for", 32, 1);
  if (name == kSharedOffsetAttr)
    return verifyInteger(op, attribute, isa<BufferOp, TopCreateOp>(op), "a tile.buffer or tile.top_create", 64, 0);
  if (name == kNamedAttr) {
    if (op->getNumResults() != 1 || isTile(op->getResult(0)))
      return op->emitOpError() << "'" << name << "' belongs on an operation whose only result is a scalar";
    if (!isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError() << "'" << name << "' has no value, not " << attribute.getValue();
    return success();
  }
  if (name == kStayInSharedAttr) {
    if (!isa<LoadOp>(op))
      return op->emitOpError() << "'" << name << "' belongs on a tile.load";
    if (!isa<BoolAttr>(attribute.getValue()))
      return op->emitOpError() << "'" << name << "' is an i1, not " << attribute.getValue();
    return success();
  }
  if (name == kLayoutAttr) {
    if (!isa<LayoutAttr>(attribute.getValue()))
      return op->emitOpError() << "'tile.layout' is a #tile.layout<..>, not " << attribute.getValue();
    if (op->getNumResults() != 1 || !isTile(op->getResult(0)))
      return op->emitOpError("'tile.layout' belongs on an operation whose only result is a tile");
    return success();
  }
  return op->emitOpError() << "'" << name << "' is not an attribute of the tile dialect";
}

bool nsa::tile::isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

bool nsa::tile::isColumnVector(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && isa_and_nonnull<ColumnAttr>(tile.getEncoding());
}

std::optional<Layout> nsa::tile::layoutOf(Value tile) {
  // The value of a loop has the layout of its initial value. The result of a branch has the layout of the first arm's
  // value.
  while (isTile(tile)) {
    if (auto argument = dyn_cast<BlockArgument>(tile)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        return std::nullopt;
      tile = loop.getTiedLoopInit(argument)->get();
      continue;
    }
    auto result = cast<OpResult>(tile);
    if (auto loop = dyn_cast<scf::ForOp>(result.getOwner())) {
      tile = loop.getInitArgs()[result.getResultNumber()];
    } else if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
      tile = branch.thenYield().getOperand(result.getResultNumber());
    } else {
      auto layout = result.getOwner()->getAttrOfType<LayoutAttr>(kLayoutAttr);
      return layout ? std::optional(layout.getValue()) : std::nullopt;
    }
  }
  return std::nullopt;
}
