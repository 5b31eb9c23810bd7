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

// Combines `count` vectors, `stride` bytes apart, lane by lane.
Value reduceVectors(CpuBuilder &b, tile::ReduceKind kind, Value first, int64_t count, int64_t stride) {
  auto load = [&](Value at, int64_t number) { return loadColumn(b, b.at(at, number * stride)); };
  if (kind == tile::ReduceKind::Last)
    return load(first, count - 1);
  // Several partial results hide the latency of an addition.
  const int64_t ways = std::min<int64_t>(4, count);
  const int64_t rest = count % ways;
  SmallVector<Value> partial;
  for (int64_t i = 0; i < ways; ++i)
    partial.push_back(load(first, i));
  partial = b.walk(count / ways - 1, {{b.at(first, ways * stride), ways * stride}}, partial,
                   [&](Value, ValueRange at, ValueRange carried) {
                     SmallVector<Value> next;
                     for (int64_t i = 0; i < ways; ++i)
                       next.push_back(combine(b, kind, carried[i], load(at[0], i)));
                     return next;
                   });
  for (int64_t i = 0; i < rest; ++i)
    partial[i] = combine(b, kind, partial[i], load(first, count - rest + i));
  while (partial.size() > 1) {
    Value last = partial.pop_back_val();
    Value &pair = partial[(partial.size() - 1) / 2];
    pair = combine(b, kind, pair, last);
  }
  return partial.front();
}

// Combines `count` elements that lie along the lanes of vectors, `stride` bytes apart, to a scalar.
Value reduceLanes(CpuBuilder &b, tile::ReduceKind kind, Value first, int64_t count, int64_t stride) {
  const int64_t full = count / b.lanes, rest = count % b.lanes;
  Value value = full == 0 ? Value() : reduceVectors(b, kind, first, full, stride);
  if (rest != 0) {
    // The lanes behind the last element hold anything. The sum of a number and -0 is the number.
    const VectorType vector = b.vectorOf(b.getF32Type());
    Value neutral = b.real(vector, kind == tile::ReduceKind::Add ? -0.0 : -std::numeric_limits<double>::infinity());
    Value isElement = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.laneNumbers(),
                                            b.integer(b.vectorOf(b.getI32Type()), rest));
    Value last = arith::SelectOp::create(b, isElement, loadColumn(b, b.at(first, full * stride)), neutral);
    value = value ? combine(b, kind, value, last) : last;
  }
  for (int64_t half = b.lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < b.lanes; ++lane)
      lanes.push_back((lane + half) % b.lanes);
    value = combine(b, kind, value, vector::ShuffleOp::create(b, value, value, lanes));
  }
  return vector::ExtractOp::create(b, value, ArrayRef<int64_t>{0});
}

} // namespace

// A value per column combines the slices of the tile, and a value per row combines the vectors of a slice. Either these
// are vectors of the results, or the elements of a result lie along their lanes.
void lowerReduce(CpuBuilder &b, tile::ReduceKind kind, bool ofColumns, const ColumnSource &source, Value result) {
  const TileStorage &storage = source.storage;
  const int64_t sliceBytes = storage.sliceWords() * 4;
  const int64_t results = ofColumns ? storage.sliceVectors() : storage.slices();
  const int64_t count = ofColumns ? storage.rows : storage.columns;
  const int64_t stride = ofColumns ? sliceBytes : vectorBytes(b), step = ofColumns ? vectorBytes(b) : sliceBytes;
  const bool isAlongLanes = ofColumns != storage.rowMajor;
  b.walk(results, {{source.tile, step}, {result, isAlongLanes ? 4 : vectorBytes(b)}}, [&](Value, ValueRange at) {
    if (isAlongLanes)
      b.store(reduceLanes(b, kind, at[0], count, stride), at[1]);
    else
      storeColumn(b, reduceVectors(b, kind, at[0], count, stride), at[1]);
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
