#include "compiler/cpu/BufferPlan.h"

#include "compiler/dialect/Tile.h"
#include "compiler/passes/FirstFit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace nsa::cpu {

using namespace mlir;

namespace {

// Enough for the vectors of every feature level.
constexpr int64_t kBufferAlignment = 64;

bool isReadFromMemory(OpOperand &operand) {
  auto dot = dyn_cast<tile::DotOp>(operand.getOwner());
  return !dot || operand.get() != dot.getAcc() || !isZeroTile(operand.get());
}

// The matrix of a map from whose vectors sums can start: it is the only matrix that the map reads, it holds floats, and
// it has the storage of the result. Null for other maps, and for maps that read one value per column.
Value changedTile(tile::MapOp map) {
  const TileStorage result = TileStorage::of(map.getResult(), /*lanes=*/1);
  Value found;
  for (Value input : map.getInputs()) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (type && tile::isColumnVector(type))
      return nullptr;
    if (!type || type.getRank() == 1)
      continue;
    const TileStorage storage = TileStorage::of(input, /*lanes=*/1);
    if (found || storage.isInteger || !storage.isSamePlace(result))
      return nullptr;
    found = input;
  }
  return found;
}

// The values that an operation reads from memory at its own place in the program.
SmallVector<Value> readsOf(Operation &op) {
  if (auto map = dyn_cast<tile::MapOp>(op); map && accumulatorMap(map.getResult()))
    return {};
  auto dot = dyn_cast<tile::DotOp>(op);
  if (!dot)
    return op.getOperands();
  SmallVector<Value> reads = {dot.getA(), dot.getB()};
  if (tile::MapOp map = accumulatorMap(dot.getAcc()))
    llvm::append_range(reads, map.getInputs());
  else if (!isZeroTile(dot.getAcc()))
    reads.push_back(dot.getAcc());
  return reads;
}

} // namespace

TileStorage TileStorage::of(Value tile, int64_t lanes) {
  auto type = cast<RankedTensorType>(tile.getType());
  TileStorage storage;
  storage.rows = type.getDimSize(0);
  storage.columns = type.getRank() == 2 ? type.getDimSize(1) : 1;
  storage.lanes = lanes;
  const std::optional<tile::Layout> layout = tile::layoutOf(tile);
  storage.rowMajor = layout == tile::Layout::RowMajor || (layout == tile::Layout::Striped && type.getRank() == 2);
  storage.isInteger = type.getElementType().isInteger();
  return storage;
}

bool isZeroTile(Value tile) {
  auto splat = tile.getDefiningOp<tile::SplatOp>();
  return splat && matchPattern(splat.getScalar(), m_AnyZeroFloat());
}

tile::MapOp accumulatorMap(Value tile) {
  auto map = tile.getDefiningOp<tile::MapOp>();
  if (!map || tile.use_empty() || !map.getRow().use_empty() || !map.getColumn().use_empty())
    return nullptr;
  const bool isAccumulator = llvm::all_of(tile.getUses(), [](OpOperand &use) {
    auto dot = dyn_cast<tile::DotOp>(use.getOwner());
    return dot && &use == &dot.getAccMutable();
  });
  return isAccumulator && changedTile(map) ? map : nullptr;
}

Value accumulatorSource(tile::DotOp dot) {
  if (tile::MapOp map = accumulatorMap(dot.getAcc()))
    return changedTile(map);
  return isZeroTile(dot.getAcc()) ? Value() : dot.getAcc();
}

void forEachHandover(Operation *op, llvm::function_ref<void(ValueRange, ValueRange)> visit) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    visit(loop.getRegionIterArgs(), loop.getInitArgs());
    visit(loop.getRegionIterArgs(), loop.getYieldedValues());
  } else if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch.getNumResults() != 0) {
    visit(branch.getResults(), branch.thenYield().getResults());
    visit(branch.getResults(), branch.elseYield().getResults());
  }
}

BufferPlan BufferPlan::make(func::FuncOp function, int64_t lanes) {
  BufferPlan plan(lanes);
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults())
      plan.number(result);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value argument : loop.getRegionIterArgs())
        plan.number(argument);
  });
  const int count = int(plan.storages.size());
  plan.conflicts.assign(count, llvm::BitVector(count));
  plan.apart.assign(count, llvm::BitVector(count));
  plan.members.assign(count, llvm::BitVector(count));
  for (int value = 0; value < count; ++value) {
    plan.buffer.push_back(value);
    plan.members[value].set(value);
  }
  llvm::BitVector live(count);
  plan.analyse(function.getBody().front(), live);
  plan.coalesce(function);
  plan.place();
  function.walk([&](Operation *op) {
    forEachHandover(op, [&](ValueRange to, ValueRange from) {
      plan.asideBytes = std::max(plan.asideBytes, plan.bytesAside(to, from));
    });
  });
  return plan;
}

void BufferPlan::number(Value value) {
  if (!tile::isTile(value) || (isZeroTile(value) && llvm::none_of(value.getUses(), isReadFromMemory)) ||
      accumulatorMap(value))
    return;
  indices[value] = int(storages.size());
  storages.push_back(TileStorage::of(value, lanes));
}

void BufferPlan::analyse(Block &block, llvm::BitVector &live) {
  for (Operation &op : llvm::reverse(block.without_terminator()))
    analyse(op, live);
}

// Turns the set of tiles that are alive after `op` into the set alive before it, and notes which tiles are alive
// together.
void BufferPlan::analyse(Operation &op, llvm::BitVector &live) {
  define(op.getResults(), live);
  forEachHandover(&op, [&](ValueRange to, ValueRange from) { keepApart(to, from); });

  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    llvm::BitVector before = live;
    for (Region &region : branch->getRegions()) {
      if (region.empty())
        continue;
      llvm::BitVector arm = live;
      use(region.front().getTerminator()->getOperands(), arm);
      analyse(region.front(), arm);
      before |= arm;
    }
    live = before;
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // A value from outside that the body reads is alive at the body's end too, for the next iteration. The second round
    // takes this into account.
    llvm::BitVector body;
    for (int round = 0; round < 2; ++round) {
      llvm::BitVector end = live;
      end |= body;
      use(loop.getYieldedValues(), end);
      body = std::move(end);
      analyse(*loop.getBody(), body);
      define(loop.getRegionIterArgs(), body);
    }
    live |= body;
    use(loop.getInitArgs(), live);
    return;
  }

  const SmallVector<Value> reads = readsOf(op);
  for (Value result : op.getResults()) {
    keepApart(result, reads);
    for (Value operand : reads) {
      if (!hasBuffer(result) || !hasBuffer(operand))
        continue;
      // An operation may work in place if each element depends only on the element at its own place. A dot reads `a`
      // and `b` many times, so it may not.
      const bool isAccumulator = isa<tile::DotOp>(op) && operand == accumulatorSource(cast<tile::DotOp>(op));
      const bool isSameElement = isa<tile::MapOp>(op) && storageOf(operand).isSamePlace(storageOf(result));
      if (!isAccumulator && !isSameElement)
        forbidSharing(result, operand);
    }
  }
  if (auto dot = dyn_cast<tile::DotOp>(op); dot && hasBuffer(dot.getResult()))
    for (Value side : {dot.getA(), dot.getB()})
      forbidSharing(dot.getResult(), side); // also if one tile is side and accumulator
  use(reads, live);
}

// A value must not share a buffer with values that are alive where it is written.
void BufferPlan::define(ValueRange values, llvm::BitVector &live) {
  for (Value value : values)
    if (hasBuffer(value))
      live.set(indices.at(value)); // results of one operation are written together
  for (Value value : values) {
    if (!hasBuffer(value))
      continue;
    const int index = indices.at(value);
    for (int other : live.set_bits()) {
      if (other == index)
        continue;
      conflicts[index].set(other);
      conflicts[other].set(index);
    }
  }
  for (Value value : values)
    if (hasBuffer(value))
      live.reset(indices.at(value));
}

void BufferPlan::use(ValueRange values, llvm::BitVector &live) const {
  for (Value value : values)
    if (hasBuffer(value))
      live.set(indices.at(value));
}

void BufferPlan::forbidSharing(Value a, Value b) {
  if (a == b || !hasBuffer(a) || !hasBuffer(b))
    return;
  conflicts[indices.at(a)].set(indices.at(b));
  conflicts[indices.at(b)].set(indices.at(a));
}

void BufferPlan::keepApart(ValueRange a, ValueRange b) {
  for (Value first : a) {
    for (Value second : b) {
      if (first == second || !hasBuffer(first) || !hasBuffer(second))
        continue;
      apart[indices.at(first)].set(indices.at(second));
      apart[indices.at(second)].set(indices.at(first));
    }
  }
}

void BufferPlan::coalesce(func::FuncOp function) {
  // If the result of a loop is in the buffer of the loop's value, no copy is needed, however many iterations run.
  function.walk([&](scf::ForOp loop) {
    for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
      merge(argument, result);
  });
  function.walk([&](Operation *op) {
    forEachHandover(op, [&](ValueRange to, ValueRange from) {
      for (auto [target, source] : llvm::zip_equal(to, from))
        merge(target, source);
    });
  });
  function.walk([&](tile::DotOp dot) {
    if (Value source = accumulatorSource(dot))
      merge(dot.getResult(), source);
  });
  function.walk([&](tile::MapOp map) {
    for (Value input : map.getInputs())
      if (merge(map.getResult(), input))
        break;
  });
}

bool BufferPlan::merge(Value a, Value b) {
  if (!hasBuffer(a) || !hasBuffer(b) || !storageOf(a).isSamePlace(storageOf(b)))
    return false;
  const int keep = buffer[indices.at(a)];
  const int give = buffer[indices.at(b)];
  if (keep == give)
    return true;
  if (conflicts[keep].anyCommon(members[give]))
    return false;
  for (int member : members[give].set_bits())
    buffer[member] = keep;
  members[keep] |= members[give];
  conflicts[keep] |= conflicts[give];
  apart[keep] |= apart[give];
  return true;
}

// Places buffers by first fit, largest first. A buffer avoids the placed buffers that are alive together with it.
void BufferPlan::place() {
  std::vector<int> order;
  for (int value = 0; value < int(buffer.size()); ++value)
    if (buffer[value] == value)
      order.push_back(value);
  llvm::sort(order,
             [&](int a, int b) { return std::pair(-storages[a].bytes(), a) < std::pair(-storages[b].bytes(), b); });
  SmallVector<int64_t> sizes;
  for (const TileStorage &storage : storages)
    sizes.push_back(storage.bytes());
  tile::FirstFit fit = tile::placeFirstFit(sizes, order, kBufferAlignment, [&](int current, int placed) {
    return conflicts[current].anyCommon(members[placed]) || apart[current].anyCommon(members[placed]);
  });
  offsets.assign(fit.offsets.begin(), fit.offsets.end());
  tileBytes = static_cast<int64_t>(llvm::alignTo(fit.bytes, kBufferAlignment));
}

std::vector<TileCopy> BufferPlan::copies(ValueRange to, ValueRange from) const {
  std::vector<TileCopy> moves;
  for (auto [target, source] : llvm::zip_equal(to, from))
    if (hasBuffer(target) && offsetOf(target) != offsetOf(source))
      moves.push_back({storageOf(target), offsetOf(target), offsetOf(source)});
  // A source that another copy overwrites is copied aside first.
  std::vector<TileCopy> first, last;
  int64_t aside = tileBytes;
  for (const TileCopy &move : moves) {
    const bool isOverwritten =
        llvm::any_of(moves, [&](const TileCopy &other) { return other.toOffset == move.fromOffset; });
    if (!isOverwritten) {
      last.push_back(move);
      continue;
    }
    first.push_back({move.storage, aside, move.fromOffset});
    last.push_back({move.storage, move.toOffset, aside});
    aside += llvm::alignTo(move.storage.bytes(), kBufferAlignment);
  }
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

int64_t BufferPlan::bytesAside(ValueRange to, ValueRange from) const {
  int64_t bytes = 0;
  for (const TileCopy &copy : copies(to, from))
    if (copy.toOffset >= tileBytes)
      bytes =
          std::max<int64_t>(bytes, copy.toOffset + llvm::alignTo(copy.storage.bytes(), kBufferAlignment) - tileBytes);
  return bytes;
}

} // namespace nsa::cpu
