#include "compiler/cpu/RowAccess.h"

#include "compiler/cpu/MathExpansion.h"

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

class RowMover {
public:
  RowMover(CpuBuilder &b, const RowTransfer &transfer)
      : b(b), transfer(transfer), storage(transfer.storage), carried(carriedType(b, transfer.element)),
        vector(b.vectorOf(carried)), memory(memoryType(transfer.element)), alignment(unsigned(b.lanes * 4)) {}

  void load();
  void store();

private:
  bool isColumnVector() const { return !storage.rowMajor && storage.columns == 1; }
  Value number(Value row) { return b.createOrFold<arith::TruncIOp>(b.getI32Type(), row); }
  Value zeroVector() { return carried.isInteger() ? b.integer(vector, 0) : b.real(vector, 0.0); }
  void forEachPiece(llvm::function_ref<void(Value column, int64_t lanes)> piece);
  void loadRow(Value row, Value words);
  void storeRow(Value row, Value words);
  void fillRow(Value words, int64_t firstColumn);
  void transpose(Value panel, bool intoPanel);
  void transposeBlock(Value block);
  void exchange(Value first, int64_t count, int64_t step, ArrayRef<int64_t> strides);

  CpuBuilder &b;
  const RowTransfer &transfer;
  const TileStorage &storage;
  const Type carried;
  const VectorType vector;
  const Type memory;
  const unsigned alignment;
};

// Calls `piece(column, lanes)` for vectors that cover the columns of the tensor exactly: full ones, then halves. Masked
// access would do too, but LLVM 22 stores a single 16 bit element under a constant mask as 32 bits.
void RowMover::forEachPiece(llvm::function_ref<void(Value, int64_t)> piece) {
  int64_t column = transfer.columns / b.lanes * b.lanes;
  b.loop(0, column, b.lanes, [&](Value first) { piece(first, b.lanes); });
  for (int64_t lanes = b.lanes / 2; lanes > 0; lanes /= 2) {
    if (!((transfer.columns - column) & lanes))
      continue;
    piece(b.i64(column), lanes);
    column += lanes;
  }
}

void RowMover::fillRow(Value words, int64_t firstColumn) {
  b.loop(firstColumn, storage.rowWords(), b.lanes,
         [&](Value column) { b.store(zeroVector(), b.at(words, column, carried), alignment); });
}

// `words` is where the row lies contiguously: in the tile, or in the staging area.
void RowMover::loadRow(Value row, Value words) {
  RowAddress address = transfer.rowAddress(number(row));
  auto copy = [&] {
    fillRow(words, transfer.columns / b.lanes * b.lanes);
    forEachPiece([&](Value column, int64_t lanes) {
      Value bits = b.load(VectorType::get({lanes}, memory), b.at(address.pointer, column, memory));
      b.store(decode(b, bits, transfer.element), b.at(words, column, carried));
    });
  };
  b.branch(address.exists, copy, [&] { fillRow(words, 0); });
}

void RowMover::storeRow(Value row, Value words) {
  RowAddress address = transfer.rowAddress(number(row));
  auto copy = [&] {
    forEachPiece([&](Value column, int64_t lanes) {
      Value value = b.load(VectorType::get({lanes}, carried), b.at(words, column, carried));
      b.store(encode(b, value, transfer.element), b.at(address.pointer, column, memory));
    });
  };
  b.branch(address.exists, copy, nullptr);
}

// Loads `count` vectors at `first`, first + step, .., exchanges bit t of the lane number with bit t of the vector
// number for the strides 2^t in `strides` (in vectors of the whole block), and stores them back.
void RowMover::exchange(Value first, int64_t count, int64_t step, ArrayRef<int64_t> strides) {
  SmallVector<Value> vectors;
  for (int64_t i = 0; i < count; ++i)
    vectors.push_back(b.load(vector, b.at(first, i * step * storage.rowWords(), carried), alignment));
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
    b.store(vectors[i], b.at(first, i * step * storage.rowWords(), carried), alignment);
}

// Transposes a block of lanes x lanes words of the staging area in place: butterflies, two bits of the index at a time.
// Four vectors per loop instead of all keep the code small; instruction selection spends 0.1 ms on each shuffle.
void RowMover::transposeBlock(Value block) {
  b.loop(0, b.lanes, 4,
         [&](Value row) { exchange(b.at(block, b.mul(row, storage.rowWords()), carried), 4, 1, {1, 2}); });
  SmallVector<int64_t> strides = {4};
  if (b.lanes == 16)
    strides.push_back(8);
  b.loop(0, 4, 1,
         [&](Value row) { exchange(b.at(block, b.mul(row, storage.rowWords()), carried), b.lanes / 4, 4, strides); });
}

// Between the staging area (lanes x rowWords, by rows) and a panel of the tile.
void RowMover::transpose(Value panel, bool intoPanel) {
  Value panelStart = b.at(transfer.tile, b.mul(panel, storage.panelWords()), carried);
  auto move = [&](Value firstColumn, int64_t columns) {
    Value block = b.at(transfer.staging, firstColumn, carried);
    Value vectors = b.at(panelStart, b.mul(firstColumn, b.lanes), carried);
    if (intoPanel)
      transposeBlock(block);
    b.loop(0, columns, 1, [&](Value column) {
      Value inStaging = b.at(block, b.mul(column, storage.rowWords()), carried);
      Value inPanel = b.at(vectors, b.mul(column, b.lanes), carried);
      Value value = b.load(vector, intoPanel ? inStaging : inPanel, alignment);
      b.store(value, intoPanel ? inPanel : inStaging, alignment);
    });
    if (!intoPanel)
      transposeBlock(block);
  };
  const int64_t full = storage.columns / b.lanes * b.lanes;
  b.loop(0, full, b.lanes, [&](Value column) { move(column, b.lanes); });
  if (full < storage.columns)
    move(b.i64(full), storage.columns - full);
}

void RowMover::load() {
  if (storage.rowMajor) {
    b.loop(0, storage.rows, 1,
           [&](Value row) { loadRow(row, b.at(transfer.tile, b.mul(row, storage.rowWords()), carried)); });
    return;
  }
  if (isColumnVector()) {
    b.loop(0, storage.rows, 1, [&](Value row) {
      RowAddress address = transfer.rowAddress(number(row));
      Value at = b.at(transfer.tile, row, carried);
      b.branch(
          address.exists, [&] { b.store(loadElement(b, address.pointer, transfer.element), at); },
          [&] { b.store(carried.isInteger() ? b.integer(carried, 0) : b.real(carried, 0.0), at); });
    });
    // The lanes of rows beyond the tile's.
    Value zero = carried.isInteger() ? b.integer(carried, 0) : b.real(carried, 0.0);
    b.loop(storage.rows, storage.panels() * b.lanes, 1,
           [&](Value row) { b.store(zero, b.at(transfer.tile, row, carried)); });
    return;
  }
  auto loadPanel = [&](Value panel, int64_t rows) {
    Value first = b.mul(panel, b.lanes);
    b.loop(0, rows, 1, [&](Value lane) {
      loadRow(b.add(first, lane), b.at(transfer.staging, b.mul(lane, storage.rowWords()), carried));
    });
    b.loop(rows, b.lanes, 1,
           [&](Value lane) { fillRow(b.at(transfer.staging, b.mul(lane, storage.rowWords()), carried), 0); });
    transpose(panel, /*intoPanel=*/true);
  };
  const int64_t fullPanels = storage.rows / b.lanes;
  b.loop(0, fullPanels, 1, [&](Value panel) { loadPanel(panel, b.lanes); });
  if (fullPanels < storage.panels())
    loadPanel(b.i64(fullPanels), storage.rows % b.lanes);
}

void RowMover::store() {
  if (storage.rowMajor) {
    b.loop(0, storage.rows, 1,
           [&](Value row) { storeRow(row, b.at(transfer.tile, b.mul(row, storage.rowWords()), carried)); });
    return;
  }
  if (isColumnVector()) {
    b.loop(0, storage.rows, 1, [&](Value row) {
      RowAddress address = transfer.rowAddress(number(row));
      b.branch(
          address.exists,
          [&] {
            Value value = b.load(carried, b.at(transfer.tile, row, carried));
            b.store(encode(b, value, transfer.element), address.pointer);
          },
          nullptr);
    });
    return;
  }
  auto storePanel = [&](Value panel, int64_t rows) {
    transpose(panel, /*intoPanel=*/false);
    Value first = b.mul(panel, b.lanes);
    b.loop(0, rows, 1, [&](Value lane) {
      storeRow(b.add(first, lane), b.at(transfer.staging, b.mul(lane, storage.rowWords()), carried));
    });
  };
  const int64_t fullPanels = storage.rows / b.lanes;
  b.loop(0, fullPanels, 1, [&](Value panel) { storePanel(panel, b.lanes); });
  if (fullPanels < storage.panels())
    storePanel(b.i64(fullPanels), storage.rows % b.lanes);
}

} // namespace

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

} // namespace nsa::cpu
