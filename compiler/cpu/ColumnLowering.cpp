#include "compiler/cpu/ColumnLowering.h"

#include <algorithm>
#include <limits>

namespace nsa::cpu {

using namespace mlir;

namespace {

int64_t vectorBytes(const CpuBuilder &b) { return b.lanes * 4; }

Value loadColumn(CpuBuilder &b, Value pointer) {
  return b.load(b.vectorOf(b.getF32Type()), pointer, unsigned(vectorBytes(b)));
}

void storeColumn(CpuBuilder &b, Value column, Value pointer) { b.store(column, pointer, unsigned(vectorBytes(b))); }

Value combine(CpuBuilder &b, tile::ReduceKind kind, Value x, Value y) {
  if (kind == tile::ReduceKind::Add)
    return arith::AddFOp::create(b, x, y);
  // This becomes one vmaxps.
  Value isGreater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y);
  return arith::SelectOp::create(b, isGreater, x, y);
}

Value reducePanel(CpuBuilder &b, tile::ReduceKind kind, Value panel, int64_t columns) {
  auto load = [&](Value at, int64_t column) { return loadColumn(b, b.at(at, column * vectorBytes(b))); };
  if (kind == tile::ReduceKind::Last)
    return load(panel, columns - 1);
  // Several partial results hide the latency of an addition.
  const int64_t ways = std::min<int64_t>(4, columns);
  const int64_t rest = columns % ways;
  SmallVector<Value> partial;
  for (int64_t i = 0; i < ways; ++i)
    partial.push_back(load(panel, i));
  partial = b.walk(columns / ways - 1, {{b.at(panel, ways * vectorBytes(b)), ways * vectorBytes(b)}}, partial,
                   [&](Value, ValueRange at, ValueRange carried) {
                     SmallVector<Value> next;
                     for (int64_t i = 0; i < ways; ++i)
                       next.push_back(combine(b, kind, carried[i], load(at[0], i)));
                     return next;
                   });
  for (int64_t i = 0; i < rest; ++i)
    partial[i] = combine(b, kind, partial[i], load(panel, columns - rest + i));
  while (partial.size() > 1) {
    Value last = partial.pop_back_val();
    Value &pair = partial[(partial.size() - 1) / 2];
    pair = combine(b, kind, pair, last);
  }
  return partial.front();
}

} // namespace

void lowerReduce(CpuBuilder &b, tile::ReduceKind kind, const ColumnSource &source, Value result) {
  b.walk(source.storage.panels(), {{source.tile, source.storage.panelWords() * 4}, {result, vectorBytes(b)}},
         [&](Value, ValueRange at) { storeColumn(b, reducePanel(b, kind, at[0], source.storage.columns), at[1]); });
}

void lowerReduceRows(CpuBuilder &b, tile::ReduceKind kind, const ColumnSource &source, Value result) {
  const TileStorage &storage = source.storage;
  const int64_t panelBytes = storage.panelWords() * 4, fullPanels = storage.rows / b.lanes;
  const int64_t rest = storage.rows % b.lanes;
  const VectorType vector = b.vectorOf(b.getF32Type());
  Value neutral = b.real(vector, kind == tile::ReduceKind::Add ? 0.0 : -std::numeric_limits<double>::infinity());
  b.walk(storage.columns, {{source.tile, vectorBytes(b)}, {result, 4}}, [&](Value, ValueRange at) {
    Value value = b.walk(fullPanels, {{at[0], panelBytes}}, neutral, [&](Value, ValueRange panel, ValueRange carried) {
      return SmallVector<Value>{combine(b, kind, carried[0], loadColumn(b, panel[0]))};
    })[0];
    if (rest != 0) {
      // The lanes behind the last row hold anything.
      Value isRow = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.laneNumbers(),
                                          b.integer(b.vectorOf(b.getI32Type()), rest));
      Value last = loadColumn(b, b.at(at[0], fullPanels * panelBytes));
      value = combine(b, kind, value, arith::SelectOp::create(b, isRow, last, neutral));
    }
    for (int64_t half = b.lanes / 2; half > 0; half /= 2) {
      SmallVector<int64_t> lanes;
      for (int64_t lane = 0; lane < b.lanes; ++lane)
        lanes.push_back((lane + half) % b.lanes);
      value = combine(b, kind, value, vector::ShuffleOp::create(b, value, value, lanes));
    }
    b.store(vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0}), at[1]);
  });
}

void lowerShift(CpuBuilder &b, const ColumnSource &source, Value first, Value result) {
  const int64_t panelBytes = source.storage.panelWords() * 4;
  b.walk(source.storage.panels(), {{source.tile, panelBytes}, {result, panelBytes}, {first, vectorBytes(b)}},
         [&](Value, ValueRange panelAt) {
           storeColumn(b, loadColumn(b, panelAt[2]), panelAt[1]);
           b.walk(source.storage.columns - 1,
                  {{panelAt[0], vectorBytes(b)}, {b.at(panelAt[1], vectorBytes(b)), vectorBytes(b)}},
                  [&](Value, ValueRange at) { storeColumn(b, loadColumn(b, at[0]), at[1]); });
         });
}

} // namespace nsa::cpu
