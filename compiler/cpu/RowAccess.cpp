#include "compiler/cpu/RowAccess.h"

#include "compiler/cpu/MathExpansion.h"
#include "runtime/base/manifest.h"

namespace nsa::cpu {

using namespace mlir;

namespace {

Type carriedType(CpuBuilder &b, Type element) {
  return element.isInteger() ? Type(b.getI32Type()) : Type(b.getF32Type());
}

Value decode(CpuBuilder &b, Value value, Type element) {
  return element.isBF16() || element.isF16() ? decode16(b, value, element) : value;
}

Value encode(CpuBuilder &b, Value value, Type element) {
  return element.isBF16() || element.isF16() ? encode16(b, value, element) : value;
}

// Writes a value of one or of several lanes to elements of a type, or adds it to them.
void put(CpuBuilder &b, Value value, Value pointer, Type element, Value adds) {
  if (adds) {
    Type memory = memoryType(element);
    if (auto lanes = dyn_cast<VectorType>(value.getType()))
      memory = VectorType::get(lanes.getShape(), memory);
    Value sum = arith::AddFOp::create(b, decode(b, b.load(memory, pointer), element), value);
    value = arith::SelectOp::create(b, adds, sum, value);
  }
  b.store(encode(b, value, element), pointer);
}

class RowMover {
public:
  RowMover(CpuBuilder &b, const RowTransfer &transfer)
      : b(b), transfer(transfer), storage(transfer.storage), carried(carriedType(b, transfer.element)),
        vector(b.vectorOf(carried)), alignment(unsigned(b.lanes * 4)), vectorBytes(b.lanes * 4),
        rowBytes(storage.rowWords() * 4), panelBytes(storage.panelWords() * 4) {}

  void load();
  void store();
  void toRowMajor(Value target);

private:
  // A piece of a row: a vector of `lanes` words of the tile (or of the staging area) and its place in the tensor.
  using Piece = llvm::function_ref<void(Value words, Value tensor, int64_t lanes)>;

  bool isOneColumn() const { return !storage.rowMajor && storage.columns == 1; }
  Value number(Value row) { return b.createOrFold<arith::TruncIOp>(b.getI32Type(), row); }
  Value zero(Type type) { return carried.isInteger() ? b.integer(type, 0) : b.real(type, 0.0); }
  void forEachPiece(Value words, Value tensor, Type element, Piece piece);
  void forEachStored(llvm::function_ref<void(Type element, Value adds)> body);
  void forEachRuntimePiece(Value words, Value tensor, Type memory, Piece piece);
  void loadRow(Value row, Value words);
  void storeRow(Value row, Value words);
  void fillRow(Value words, int64_t firstColumn);
  void transpose(Value panel, Value rows, bool intoPanel);
  void transposeBlock(Value block);
  void exchange(Value first, int64_t count, int64_t step, ArrayRef<int64_t> strides);

  CpuBuilder &b;
  const RowTransfer &transfer;
  const TileStorage &storage;
  const Type carried;
  const VectorType vector;
  const unsigned alignment;
  // Strides in bytes: of a vector, of a contiguous row, and of a panel of the tile.
  const int64_t vectorBytes;
  const int64_t rowBytes;
  const int64_t panelBytes;
};

// Calls `piece` for vectors that cover the columns of the tensor exactly: full vectors first, then halves. Masked
// access would do this too, but LLVM 22 stores a single 16-bit element under a constant mask as 32 bits.
void RowMover::forEachPiece(Value words, Value tensor, Type element, Piece piece) {
  const Type memory = memoryType(element);
  const int64_t elementBytes = memory.getIntOrFloatBitWidth() / 8;
  if (transfer.runtimeColumns) {
    forEachRuntimePiece(words, tensor, memory, piece);
    return;
  }
  b.walk(transfer.columns / b.lanes, {{words, vectorBytes}, {tensor, b.lanes * elementBytes}},
         [&](Value, ValueRange at) { piece(at[0], at[1], b.lanes); });
  int64_t column = transfer.columns / b.lanes * b.lanes;
  for (int64_t lanes = b.lanes / 2; lanes > 0; lanes /= 2) {
    if (!((transfer.columns - column) & lanes))
      continue;
    piece(b.at(words, column * 4), b.at(tensor, column * elementBytes), lanes);
    column += lanes;
  }
}

// forEachPiece for a number of columns that is known only at run time.
void RowMover::forEachRuntimePiece(Value words, Value tensor, Type memory, Piece piece) {
  Value columns = transfer.runtimeColumns;
  auto pieceFrom = [&](Value column, int64_t lanes) {
    piece(b.at(words, column, carried), b.at(tensor, column, memory), lanes);
  };
  auto below = [&](int64_t lanes) { return arith::AndIOp::create(b, columns, b.i64(-lanes)); };
  auto loop = scf::ForOp::create(b, b.i64(0), below(b.lanes), b.i64(b.lanes));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    pieceFrom(loop.getInductionVar(), b.lanes);
  }
  for (int64_t lanes = b.lanes / 2; lanes > 0; lanes /= 2) {
    Value isLeft =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, arith::AndIOp::create(b, columns, b.i64(lanes)), b.i64(0));
    b.branch(isLeft, [&] { pieceFrom(below(2 * lanes), lanes); }, nullptr);
  }
}

void RowMover::fillRow(Value words, int64_t firstColumn) {
  b.walk((storage.rowWords() - firstColumn) / b.lanes, {{b.at(words, firstColumn * 4), vectorBytes}},
         [&](Value, ValueRange at) { b.store(zero(vector), at[0], alignment); });
}

// `words` is the place where the row is contiguous: in the tile, or in the staging area.
void RowMover::loadRow(Value row, Value words) {
  RowAddress address = transfer.rowAddress(number(row));
  auto copy = [&] {
    fillRow(words, transfer.runtimeColumns ? 0 : transfer.columns / b.lanes * b.lanes);
    forEachPiece(words, address.pointer, transfer.element, [&](Value to, Value from, int64_t lanes) {
      Type memory = VectorType::get({lanes}, memoryType(transfer.element));
      b.store(decode(b, b.load(memory, from), transfer.element), to);
    });
  };
  b.branch(address.exists, copy, [&] { fillRow(words, 0); });
}

// Emits `body` for each way to store that the flags of the tensor choose from. `adds` is null where the way is to
// overwrite.
void RowMover::forEachStored(llvm::function_ref<void(Type element, Value adds)> body) {
  const GradientFlags &gradient = transfer.gradient;
  if (!gradient)
    return body(transfer.element, nullptr);
  const Type f32 = b.getF32Type();
  auto otherwise = [&] {
    if (transfer.element == f32)
      return body(f32, gradient.adds);
    b.branch(gradient.holdsFloats, [&] { body(f32, gradient.adds); }, [&] { body(transfer.element, gradient.adds); });
  };
  b.branch(gradient.isPlain, [&] { body(transfer.element, nullptr); }, otherwise);
}

void RowMover::storeRow(Value row, Value words) {
  RowAddress address = transfer.rowAddress(number(row));
  auto copy = [&](Type element, Value adds) {
    forEachPiece(words, address.pointer, element, [&](Value from, Value to, int64_t lanes) {
      put(b, b.load(VectorType::get({lanes}, carried), from), to, element, adds);
    });
  };
  b.branch(address.exists, [&] { forEachStored(copy); }, nullptr);
}

// Loads `count` vectors at `first`, first + step, .., exchanges bit t of the lane number with bit t of the vector
// number for the strides 2^t in `strides` (in vectors of the whole block), and stores them back.
void RowMover::exchange(Value first, int64_t count, int64_t step, ArrayRef<int64_t> strides) {
  SmallVector<Value> vectors;
  for (int64_t i = 0; i < count; ++i)
    vectors.push_back(b.load(vector, b.at(first, i * step * rowBytes), alignment));
  for (int64_t stride : strides) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < b.lanes; ++lane) {
      const bool isOdd = (lane & stride) != 0;
      low.push_back(isOdd ? b.lanes + lane - stride : lane);
      high.push_back(isOdd ? b.lanes + lane : lane + stride);
    }
    for (int64_t i = 0; i < count; ++i) {
      if ((i * step) & stride)
        continue;
      Value &even = vectors[i], &odd = vectors[i + stride / step];
      Value lower = vector::ShuffleOp::create(b, even, odd, low);
      odd = vector::ShuffleOp::create(b, even, odd, high);
      even = lower;
    }
  }
  for (int64_t i = 0; i < count; ++i)
    b.store(vectors[i], b.at(first, i * step * rowBytes), alignment);
}

// Transposes a block of lanes x lanes words of the staging area in place. It uses butterflies, for two bits of the
// index at a time. A loop over four vectors instead of code for all of them keeps the code small: instruction selection
// takes 0.1 ms per shuffle.
void RowMover::transposeBlock(Value block) {
  b.walk(b.lanes / 4, {{block, 4 * rowBytes}}, [&](Value, ValueRange at) { exchange(at[0], 4, 1, {1, 2}); });
  SmallVector<int64_t> strides = {4};
  if (b.lanes == 16)
    strides.push_back(8);
  b.walk(4, {{block, rowBytes}}, [&](Value, ValueRange at) { exchange(at[0], b.lanes / 4, 4, strides); });
}

// Moves between an area of lanes x rowWords words, by rows, and a panel of the tile. The area is changed in place.
void RowMover::transpose(Value panel, Value rows, bool intoPanel) {
  auto move = [&](Value block, Value vectors, int64_t columns) {
    if (intoPanel)
      transposeBlock(block);
    b.walk(columns, {{block, rowBytes}, {vectors, vectorBytes}}, [&](Value, ValueRange at) {
      Value inStaging = at[0], inPanel = at[1];
      Value value = b.load(vector, intoPanel ? inStaging : inPanel, alignment);
      b.store(value, intoPanel ? inPanel : inStaging, alignment);
    });
    if (!intoPanel)
      transposeBlock(block);
  };
  b.walk(storage.columns / b.lanes, {{rows, vectorBytes}, {panel, b.lanes * vectorBytes}},
         [&](Value, ValueRange at) { move(at[0], at[1], b.lanes); });
  const int64_t full = storage.columns / b.lanes * b.lanes;
  if (full < storage.columns)
    move(b.at(rows, full * 4), b.at(panel, full * vectorBytes), storage.columns - full);
}

void RowMover::load() {
  if (storage.rowMajor) {
    b.walk(storage.rows, {{transfer.tile, rowBytes}}, [&](Value row, ValueRange at) { loadRow(row, at[0]); });
    return;
  }
  if (isOneColumn()) {
    b.walk(storage.rows, {{transfer.tile, 4}}, [&](Value row, ValueRange at) {
      RowAddress address = transfer.rowAddress(number(row));
      b.branch(
          address.exists, [&] { b.store(loadElement(b, address.pointer, transfer.element), at[0]); },
          [&] { b.store(zero(carried), at[0]); });
    });
    // Clears the lanes behind the last row of the tile.
    b.walk(storage.panels() * b.lanes - storage.rows, {{b.at(transfer.tile, storage.rows * 4), 4}},
           [&](Value, ValueRange at) { b.store(zero(carried), at[0]); });
    return;
  }
  auto loadPanel = [&](Value firstRow, Value panel, int64_t rows) {
    b.walk(rows, {{transfer.staging, rowBytes}},
           [&](Value lane, ValueRange at) { loadRow(b.add(firstRow, lane), at[0]); });
    b.walk(b.lanes - rows, {{b.at(transfer.staging, rows * rowBytes), rowBytes}},
           [&](Value, ValueRange at) { fillRow(at[0], 0); });
    transpose(panel, transfer.staging, /*intoPanel=*/true);
  };
  const int64_t fullPanels = storage.rows / b.lanes;
  b.walk(fullPanels, {{transfer.tile, panelBytes}},
         [&](Value panel, ValueRange at) { loadPanel(b.mul(panel, b.lanes), at[0], b.lanes); });
  if (fullPanels < storage.panels())
    loadPanel(b.i64(fullPanels * b.lanes), b.at(transfer.tile, fullPanels * panelBytes), storage.rows % b.lanes);
}

void RowMover::store() {
  if (storage.rowMajor) {
    b.walk(storage.rows, {{transfer.tile, rowBytes}}, [&](Value row, ValueRange at) { storeRow(row, at[0]); });
    return;
  }
  if (isOneColumn()) {
    b.walk(storage.rows, {{transfer.tile, 4}}, [&](Value row, ValueRange at) {
      RowAddress address = transfer.rowAddress(number(row));
      auto copy = [&](Type element, Value adds) { put(b, b.load(carried, at[0]), address.pointer, element, adds); };
      b.branch(address.exists, [&] { forEachStored(copy); }, nullptr);
    });
    return;
  }
  auto storePanel = [&](Value firstRow, Value panel, int64_t rows) {
    transpose(panel, transfer.staging, /*intoPanel=*/false);
    b.walk(rows, {{transfer.staging, rowBytes}},
           [&](Value lane, ValueRange at) { storeRow(b.add(firstRow, lane), at[0]); });
  };
  const int64_t fullPanels = storage.rows / b.lanes;
  b.walk(fullPanels, {{transfer.tile, panelBytes}},
         [&](Value panel, ValueRange at) { storePanel(b.mul(panel, b.lanes), at[0], b.lanes); });
  if (fullPanels < storage.panels())
    storePanel(b.i64(fullPanels * b.lanes), b.at(transfer.tile, fullPanels * panelBytes), storage.rows % b.lanes);
}

// A whole panel is transposed where its rows belong. The rows of the last panel may be fewer.
void RowMover::toRowMajor(Value target) {
  const int64_t fullPanels = storage.rows / b.lanes, rest = storage.rows % b.lanes;
  b.walk(fullPanels, {{transfer.tile, panelBytes}, {target, b.lanes * rowBytes}},
         [&](Value, ValueRange at) { transpose(at[0], at[1], /*intoPanel=*/false); });
  if (rest == 0)
    return;
  transpose(b.at(transfer.tile, fullPanels * panelBytes), transfer.staging, /*intoPanel=*/false);
  b.walk(rest * rowBytes / vectorBytes,
         {{transfer.staging, vectorBytes}, {b.at(target, fullPanels * b.lanes * rowBytes), vectorBytes}},
         [&](Value, ValueRange at) { b.store(b.load(vector, at[0], alignment), at[1], alignment); });
}

} // namespace

GradientFlags GradientFlags::of(CpuBuilder &b, Value flags, Type element) {
  auto has = [&](uint64_t bits) -> Value {
    Value set = arith::AndIOp::create(b, flags, b.i64(static_cast<int64_t>(bits)));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, set, b.i64(0));
  };
  const bool isWide = element.isF32();
  Value isOther = has(isWide ? kViewAdds : kViewHoldsFloats | kViewAdds);
  GradientFlags result;
  result.isPlain = arith::XOrIOp::create(b, isOther, b.integer(b.getI1Type(), 1));
  result.holdsFloats = isWide ? b.integer(b.getI1Type(), 1) : has(kViewHoldsFloats);
  result.adds = has(kViewAdds);
  result.elementBytes = arith::SelectOp::create(b, result.holdsFloats, b.i64(4), b.i64(isWide ? 4 : 2));
  return result;
}

int64_t stagingBytes(const TileStorage &storage) {
  return storage.rowMajor || storage.columns == 1 ? 0 : storage.lanes * storage.rowWords() * 4;
}

Type memoryType(Type element) {
  return element.isBF16() || element.isF16() ? IntegerType::get(element.getContext(), 16) : element;
}

Value loadElement(CpuBuilder &b, Value pointer, Type element) {
  return decode(b, b.load(memoryType(element), pointer), element);
}

void lowerLoadRows(CpuBuilder &b, const RowTransfer &transfer) { RowMover(b, transfer).load(); }

void lowerStoreRows(CpuBuilder &b, const RowTransfer &transfer) { RowMover(b, transfer).store(); }

void lowerToRowMajor(CpuBuilder &b, const TileStorage &storage, Value tile, Value target, Value staging) {
  RowTransfer transfer;
  transfer.element = storage.isInteger ? Type(b.getI32Type()) : Type(b.getF32Type());
  transfer.storage = storage;
  transfer.tile = tile;
  transfer.staging = staging;
  RowMover(b, transfer).toRowMajor(target);
}

int64_t conversionBytes(const TileStorage &storage) { return storage.lanes * storage.rowWords() * 4; }

} // namespace nsa::cpu
