#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "compiler/passes/Passes.h.inc"

namespace {

// A demand of one operation for the layout of a tile.
struct Demand {
  Layout layout;
  Operation *by;
};

Type elementOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getElementType(); }

// The shapes that tensor core fragments can hold, and long rows on a GPU.
class FragmentRules {
public:
  explicit FragmentRules(int64_t warps) : warps(warps) {}

  // Whether all warps hold whole slabs of the rows of `tile`.
  bool hasWholeSlabs(Value tile) const {
    auto type = cast<RankedTensorType>(tile.getType());
    return isColumnVector(type) || type.getDimSize(0) % (kSlabRows * warps) == 0;
  }

  LogicalResult check(Operation *op, Layout layout) const {
    auto tile = cast<RankedTensorType>(op->getResult(0).getType());
    if (layout == Layout::Shared) {
      if (tile.getDimSize(0) % kSharedRows != 0)
        return op->emitOpError() << "has a tile of " << tile.getDimSize(0)
                                 << " rows; in shared memory they are multiples of " << kSharedRows;
      return success();
    }
    if (layout == Layout::Uniform)
      return success();
    if (layout == Layout::Column || layout == Layout::Striped) {
      const int64_t columns = tile.getShape().back();
      if (columns % kAccumulatorColumns != 0)
        return op->emitOpError() << "has a tile of " << columns << " columns; as " << stringifyLayout(layout)
                                 << " they are multiples of " << kAccumulatorColumns;
      return success();
    }
    if (tile.getDimSize(0) % (kSlabRows * warps) != 0)
      return op->emitOpError() << "has a tile of " << tile.getDimSize(0) << " rows, but " << warps << " warps of "
                               << kSlabRows << " rows split multiples of " << kSlabRows * warps;
    int64_t granule = layout == Layout::OperandA      ? kHalfGranule
                      : layout == Layout::Accumulator ? kAccumulatorColumns
                                                      : 1;
    if (tile.getRank() == 2 && tile.getDimSize(1) % granule != 0)
      return op->emitOpError() << "has a tile of " << tile.getDimSize(1) << " columns; as " << stringifyLayout(layout)
                               << " they are multiples of " << granule;
    return success();
  }

  LogicalResult check(DotOp dot) const {
    if (elementOf(dot.getA()) != elementOf(dot.getB()))
      return dot.emitOpError() << "multiplies " << elementOf(dot.getA()) << " by " << elementOf(dot.getB())
                               << "; on a GPU both sides have one type";
    int64_t depth = dot.getDepth();
    int64_t columns = cast<RankedTensorType>(dot.getType()).getDimSize(1);
    int64_t granule = elementOf(dot.getA()).isF32() ? kFloatGranule : kHalfGranule;
    if (depth % granule != 0 || columns % granule != 0)
      return dot.emitOpError() << "sums over " << depth << " and makes " << columns << " columns; with elements of "
                               << elementOf(dot.getA()) << " both are multiples of " << granule;
    return success();
  }

private:
  // For 16-bit types: mma.sync m16n8k16, two of them for each ldmatrix.x4 of the right side. For f32: steps of the
  // accumulator's column tiles in both directions. A thread holds as many neighbouring columns of a long row as a
  // column tile has.
  static constexpr int64_t kSlabRows = 16, kSharedRows = 8, kAccumulatorColumns = 8, kHalfGranule = 16,
                           kFloatGranule = 8;
  int64_t warps;
};

struct AssignLayouts : impl::AssignLayoutsBase<AssignLayouts> {
  using AssignLayoutsBase::AssignLayoutsBase;

  void runOnOperation() override {
    joined = {};
    demands.clear();
    layouts = hasLongRows() ? LayoutTarget::kRows : target;
    getOperation().walk([&](Operation *op) { joinControlFlow(op); });
    insertConversions();
    WalkResult walk = getOperation().walk(
        [&](Operation *op) { return failed(collectDemands(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
    if (!walk.wasInterrupted())
      walk = getOperation().walk([&](LayoutOpInterface op) {
        bool makesTile = op->getNumResults() == 1 && isTile(op->getResult(0));
        return makesTile && failed(assign(op)) ? WalkResult::interrupt() : WalkResult::advance();
      });
    if (walk.wasInterrupted() || (target == LayoutTarget::kGpu && failed(checkFragments())))
      signalPassFailure();
  }

private:
  // Long rows are for a kernel in which some tile has no whole slabs, and no operation needs fragments. A CPU program
  // has one warp.
  bool hasLongRows() {
    auto warps = getOperation()->getAttrOfType<IntegerAttr>(kWarpsAttr);
    const FragmentRules rules(warps && target == LayoutTarget::kGpu ? warps.getInt() : 1);
    bool fits = true, isFree = true;
    getOperation().walk([&](Operation *op) {
      isFree &= !needsFragments(op);
      for (Value result : op->getResults())
        fits &= !isTile(result) || rules.hasWholeSlabs(result);
    });
    return isFree && !fits;
  }

  void join(Value a, Value b) {
    if (isTile(a))
      joined.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }

  // Joins the values that become one variable in the generated code.
  void joinControlFlow(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [result, init, argument, yielded] :
           llvm::zip(loop.getResults(), loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues())) {
        join(result, init);
        join(result, argument);
        join(result, yielded);
      }
    } else if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch.getNumResults() > 0) {
      for (auto [result, first, second] :
           llvm::zip(branch.getResults(), branch.thenYield().getOperands(), branch.elseYield().getOperands())) {
        join(result, first);
        join(result, second);
      }
    }
  }

  void *classOf(Value tile) { return joined.getOrInsertLeaderValue(tile.getAsOpaquePointer()); }

  SmallVector<Demand> &demandsOf(Value tile) { return demands[classOf(tile)]; }

  // What operations want of the values that control flow joins.
  struct Wanted {
    SmallVector<OpOperand *> inMemory; // the operands that are read from memory
    bool isWantedElsewhere = false;    // whether others are read in another layout
    bool isMadeInMemory = true;        // whether all producers can make the tile in memory
  };

  // Inserts a conversion where a tile is read from memory and its producer cannot make it there, or would have to make
  // it in two layouts.
  void insertConversions() {
    llvm::MapVector<void *, Wanted> wanted;
    const Layout inMemory = memoryLayout(layouts);
    getOperation().walk([&](LayoutOpInterface op) {
      for (OpOperand &operand : op->getOpOperands()) {
        if (!isTile(operand.get()))
          continue;
        Wanted &tile = wanted[classOf(operand.get())];
        if (op.getOperandLayout(operand, layouts) == inMemory)
          tile.inMemory.push_back(&operand);
        else
          tile.isWantedElsewhere = true;
      }
      if (op->getNumResults() == 1 && isTile(op->getResult(0)))
        wanted[classOf(op->getResult(0))].isMadeInMemory &= op.offersLayout(inMemory, layouts);
    });
    llvm::DenseMap<Value, Value> converted;
    for (auto &[leader, tile] : wanted)
      if (!tile.isMadeInMemory || tile.isWantedElsewhere)
        for (OpOperand *operand : tile.inMemory)
          operand->set(convert(operand->get(), converted));
  }

  static Value convert(Value tile, llvm::DenseMap<Value, Value> &converted) {
    Value &result = converted[tile];
    if (!result) {
      OpBuilder builder(tile.getContext());
      builder.setInsertionPointAfterValue(tile);
      result = ConvertLayoutOp::create(builder, tile.getLoc(), tile.getType(), tile);
    }
    return result;
  }

  void demand(Value tile, Layout layout, Operation *by) {
    SmallVector<Demand> &known = demandsOf(tile);
    auto find = [&](Layout wanted) {
      return llvm::find_if(known, [&](const Demand &side) { return side.layout == wanted; });
    };
    if (find(layout) != known.end())
      return;
    // For 16-bit types both layouts are the same fragments, so an operation that reads an accumulator reads a left
    // operand too.
    if (layout == Layout::Accumulator && find(Layout::OperandA) != known.end())
      return;
    auto accumulator = find(Layout::Accumulator);
    if (layout == Layout::OperandA && accumulator != known.end() && !elementOf(tile).isF32())
      *accumulator = {layout, by};
    else
      known.push_back({layout, by});
  }

  LogicalResult collectDemands(Operation *op) {
    // A layout that was written by hand counts as a demand.
    if (auto layout = op->getAttrOfType<LayoutAttr>(kLayoutAttr))
      demand(op->getResult(0), layout.getValue(), op);
    if (auto reader = dyn_cast<LayoutOpInterface>(op)) {
      for (OpOperand &operand : op->getOpOperands())
        if (isTile(operand.get()))
          demand(operand.get(), reader.getOperandLayout(operand, layouts), op);
      return success();
    }
    // Control flow passes tiles on, in whatever layout.
    bool isControlFlow = isa<scf::ForOp, scf::IfOp>(op) || op->hasTrait<OpTrait::IsTerminator>();
    if (isControlFlow || (llvm::none_of(op->getOperands(), isTile) && llvm::none_of(op->getResults(), isTile)))
      return success();
    return op->emitOpError("has tiles, but does not say in which layouts (LayoutOpInterface)");
  }

  LogicalResult assign(LayoutOpInterface op) {
    Value tile = op->getResult(0);
    const SmallVector<Demand> &known = demandsOf(tile);
    if (known.size() > 1) {
      InFlightDiagnostic error = op->emitOpError()
                                 << "makes a tile that is needed as " << stringifyLayout(known[0].layout) << " and as "
                                 << stringifyLayout(known[1].layout) << "; there is no conversion";
      for (const Demand &side : known)
        error.attachNote(side.by->getLoc()) << side.by->getName() << " needs " << stringifyLayout(side.layout);
      return error;
    }
    Layout layout = known.empty() ? ordinaryLayout(tile, layouts) : known[0].layout;
    if (!op.offersLayout(layout, layouts)) {
      InFlightDiagnostic error = op->emitOpError() << "cannot make a tile of layout " << stringifyLayout(layout);
      error.attachNote(known[0].by->getLoc()) << known[0].by->getName() << " needs it";
      return error;
    }
    op->setAttr(kLayoutAttr, LayoutAttr::get(&getContext(), layout));
    return success();
  }

  LogicalResult checkFragments() {
    auto warps = getOperation()->getAttrOfType<IntegerAttr>(kWarpsAttr);
    if (!warps)
      return getOperation().emitError() << "has no '" << kWarpsAttr << "', by which a GPU splits the rows of a tile";
    FragmentRules rules(warps.getInt());
    WalkResult walk = getOperation().walk([&](Operation *op) {
      auto layout = op->getAttrOfType<LayoutAttr>(kLayoutAttr);
      auto dot = dyn_cast<DotOp>(op);
      bool fits = (!layout || succeeded(rules.check(op, layout.getValue()))) && (!dot || succeeded(rules.check(dot)));
      return fits ? WalkResult::advance() : WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }

  LayoutTarget layouts = LayoutTarget::kGpu;
  // Values as opaque pointers, because EquivalenceClasses needs an order.
  llvm::EquivalenceClasses<void *> joined;
  llvm::DenseMap<void *, SmallVector<Demand>> demands;
};

} // namespace

} // namespace nsa::tile
