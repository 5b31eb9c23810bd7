#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "compiler/passes/Passes.h.inc"

namespace {

RankedTensorType tileType(Value value) { return cast<RankedTensorType>(value.getType()); }

// Whether the tiles have the same shape, and as vectors both one value per row or both one value per column.
bool haveSamePlaces(RankedTensorType a, RankedTensorType b) { return a.clone(b.getElementType()) == b; }

// Whether the operation computes each element of its tile from the same elements of its operands.
bool isElementwise(Operation *op) {
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)))
    return false;
  return isa<CastOp>(op) || (OpTrait::hasElementwiseMappableTraits(op) && op->getNumOperands() > 0);
}

// Whether the elements of the operation are known without computing. Such an operation sinks into each expression that
// reads it.
bool isFree(Operation *op) { return op && isa<IotaOp, SplatOp, BroadcastOp>(op); }

// One expression: the operations of a block whose results only `root` needs, in program order.
struct Expression {
  Operation *root;
  llvm::SetVector<Operation *> members;
};

// Splits the elementwise operations of a block into expressions. It visits users before producers. So when it reaches
// an operation, the expressions of all its users are known.
SmallVector<Expression> findExpressions(Block &block) {
  SmallVector<Expression> expressions;
  llvm::DenseMap<Operation *, size_t> expressionOf;
  for (Operation &op : llvm::reverse(block)) {
    if (!isElementwise(&op))
      continue;
    std::optional<size_t> joined;
    bool boundary = op.use_empty();
    for (Operation *user : op.getUsers()) {
      auto place = expressionOf.find(user);
      boundary |= place == expressionOf.end() || (joined && *joined != place->second);
      if (!boundary)
        joined = place->second;
    }
    if (!boundary && haveSamePlaces(tileType(op.getResult(0)), tileType(expressions[*joined].root->getResult(0)))) {
      expressionOf[&op] = *joined;
    } else {
      expressionOf[&op] = joined.emplace(expressions.size());
      expressions.push_back({&op, {}});
    }
    expressions[*joined].members.insert(&op);
  }
  return expressions;
}

// Builds the tile.map of one expression.
class MapBuilder {
public:
  MapBuilder(RankedTensorType type, Operation *before, Location loc) : builder(before), type(type) {
    map = MapOp::create(builder, loc, type, ValueRange());
    Block &body = map.getBody().emplaceBlock();
    Type i32 = builder.getI32Type();
    row = body.addArgument(i32, loc);
    column = body.addArgument(i32, loc);
    builder.setInsertionPointToEnd(&body);
  }

  // The scalar for the element of `operand`, a value from outside of the expression.
  Value element(Value operand) {
    if (Value known = elements.lookupOrNull(operand))
      return known;
    Value scalar = makeElement(operand);
    elements.map(operand, scalar);
    return scalar;
  }

  void addMember(Operation *op) {
    for (Value operand : op->getOperands())
      element(operand);
    if (auto cast = dyn_cast<CastOp>(op)) {
      elements.map(op->getResult(0),
                   convert(element(cast.getSource()), tileType(op->getResult(0)).getElementType(), op->getLoc()));
      return;
    }
    Operation *scalar = builder.clone(*op, elements);
    scalar->getResult(0).setType(tileType(op->getResult(0)).getElementType());
    elements.map(op->getResult(0), scalar->getResult(0));
  }

  MapOp finish(Value result) {
    Value yielded = element(result);
    YieldOp::create(builder, yielded.getLoc(), yielded);
    map.getInputsMutable().assign(inputs.getArrayRef());
    return map;
  }

private:
  Value makeElement(Value operand) {
    Operation *producer = operand.getDefiningOp();
    if (auto splat = dyn_cast_or_null<SplatOp>(producer))
      return element(splat.getScalar());
    if (auto broadcast = dyn_cast_or_null<BroadcastOp>(producer))
      return element(broadcast.getVector());
    if (auto iota = dyn_cast_or_null<IotaOp>(producer))
      return iota.getDimension() == 0 && !isColumnVector(iota.getType()) ? row : column;
    if (producer && producer->hasTrait<OpTrait::ConstantLike>() && !isTile(operand))
      return builder.clone(*producer)->getResult(0);
    inputs.insert(operand);
    return map.getBody().front().insertArgument(inputs.size() - 1, getElementTypeOrSelf(operand.getType()),
                                                operand.getLoc());
  }

  // arith has no conversion between the two 16-bit types. Every value of either type is exact in f32, so the conversion
  // goes through f32.
  Value convert(Value value, Type to, Location loc) {
    unsigned from = value.getType().getIntOrFloatBitWidth();
    if (value.getType() == to)
      return value;
    if (from < to.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(builder, loc, to, value);
    if (from > to.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(builder, loc, to, value);
    return arith::TruncFOp::create(builder, loc, to, arith::ExtFOp::create(builder, loc, builder.getF32Type(), value));
  }

  OpBuilder builder;
  RankedTensorType type;
  MapOp map;
  Value row, column;
  llvm::SetVector<Value> inputs;
  IRMapping elements;
};

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    if (failed(splatConstants()))
      return signalPassFailure();
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      for (Expression &expression : findExpressions(*block)) {
        if (failed(checkPlace(expression.root)))
          return signalPassFailure();
        fuse(expression);
      }
    if (failed(materializeFreeTiles()))
      signalPassFailure();
  }

private:
  // Replaces constants such as `arith.constant dense<1.0>`. From here on a tile of one value is a tile.splat.
  LogicalResult splatConstants() {
    WalkResult walk = getOperation().walk([](arith::ConstantOp constant) {
      if (!isTile(constant))
        return WalkResult::advance();
      auto elements = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!elements) {
        constant.emitOpError("is a tile of different values; only one value for all elements can be compiled");
        return WalkResult::interrupt();
      }
      OpBuilder builder(constant);
      auto scalar = arith::ConstantOp::create(builder, constant.getLoc(), elements.getSplatValue<TypedAttr>());
      constant.replaceAllUsesWith(SplatOp::create(builder, constant.getLoc(), constant.getType(), scalar).getResult());
      constant.erase();
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  // A tile that an expression makes or reads has a place in registers or in memory, and no place holds f64.
  static LogicalResult checkPlace(Operation *op) {
    if (!tileType(op->getResult(0)).getElementType().isF64())
      return success();
    return op->emitOpError(
        "is a tile of f64 that more than one elementwise expression needs; such a tile has no place, "
        "so its expression must end in another type");
  }

  static void fuse(Expression &expression) {
    Value result = expression.root->getResult(0);
    MapBuilder builder(tileType(result), expression.root, expression.root->getLoc());
    for (Operation *member : llvm::reverse(expression.members))
      builder.addMember(member);
    result.replaceAllUsesWith(builder.finish(result).getResult());
    for (Operation *member : expression.members)
      member->erase();
  }

  // An index or a broadcast that is read outside of expressions becomes an expression by itself.
  LogicalResult materializeFreeTiles() {
    SmallVector<Operation *> freeTiles;
    getOperation().walk([&](Operation *op) {
      if (isFree(op))
        freeTiles.push_back(op);
    });
    for (Operation *op : llvm::reverse(freeTiles)) {
      if (!op->use_empty()) {
        if (failed(checkPlace(op)))
          return failure();
        if (isa<SplatOp>(op))
          continue;
        Value result = op->getResult(0);
        MapBuilder builder(tileType(result), op, op->getLoc());
        result.replaceAllUsesWith(builder.finish(result).getResult());
      }
      Operation *scalar = isa<SplatOp>(op) ? op->getOperand(0).getDefiningOp() : nullptr;
      op->erase();
      if (scalar && isOpTriviallyDead(scalar))
        scalar->erase();
    }
    return success();
  }
};

} // namespace

} // namespace nsa::tile
