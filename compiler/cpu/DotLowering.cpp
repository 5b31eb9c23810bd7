#include "compiler/cpu/DotLowering.h"

#include <algorithm>

namespace nsa::cpu {

using namespace mlir;

namespace {

// AVX-512 has 32 vector registers and masks of their own. AVX2 has 16 that hold the masks as well; beyond 8 masked sums
// LLVM spills.
bool fitsRegisters(int64_t lanes, bool masked, const MicroTile &tile) {
  const int64_t sums = tile.panels * tile.columns;
  const int64_t operands = tile.panels + 1;
  if (lanes == 16)
    return sums <= 24 && sums + operands <= 32;
  return sums <= (masked ? 8 : 16 - operands);
}

// Cycles of one step along k, for two multiply-adds and two loads per cycle, a multiply-add latency of four and one
// cycle for the loop itself.
double cyclesPerStep(int64_t panels, int64_t columns) {
  if (columns == 0)
    return 0;
  const double multiplyAdds = double(panels * columns) / 2;
  const double loads = double(panels + columns) / 2;
  return std::max({multiplyAdds, loads, 4.0}) + 1;
}

double cyclesPerStep(int64_t panels, int64_t columns, const MicroTile &tile) {
  auto ofPanels = [&](int64_t count) {
    return double(columns / tile.columns) * cyclesPerStep(count, tile.columns) +
           cyclesPerStep(count, columns % tile.columns);
  };
  const int64_t rest = panels % tile.panels;
  return double(panels / tile.panels) * ofPanels(tile.panels) + (rest ? ofPanels(rest) : 0.0);
}

class DotEmitter {
public:
  DotEmitter(CpuBuilder &b, const DotOperands &dot) : b(b), dot(dot) {}

  void emit() {
    const int64_t panels = dot.resultStorage.panels();
    const MicroTile tile = chooseMicroTile(b.lanes, panels, dot.resultStorage.columns, dot.zeroAnnihilates);
    const int64_t fullPanels = panels / tile.panels * tile.panels;
    b.loop(0, fullPanels, tile.panels, [&](Value panel) { emitPanels(panel, tile); });
    if (fullPanels < panels)
      emitPanels(b.i64(fullPanels), {panels - fullPanels, tile.columns});
  }

private:
  void emitPanels(Value panel, MicroTile tile) {
    const int64_t columns = dot.resultStorage.columns;
    const int64_t fullColumns = columns / tile.columns * tile.columns;
    b.loop(0, fullColumns, tile.columns, [&](Value column) { emitTile(panel, column, tile); });
    if (fullColumns < columns)
      emitTile(panel, b.i64(fullColumns), {tile.panels, columns - fullColumns});
  }

  // Pointers to (panel + i, column), i below `count`.
  SmallVector<Value> panelPointers(Value buffer, const TileStorage &storage, Value panel, Value column, int64_t count) {
    Value words = b.mul(panel, storage.panelWords());
    if (column)
      words = b.add(words, b.mul(column, storage.lanes));
    Value first = b.at(buffer, words, b.getF32Type());
    SmallVector<Value> pointers;
    for (int64_t i = 0; i < count; ++i)
      pointers.push_back(b.at(first, i * storage.panelWords(), b.getF32Type()));
    return pointers;
  }

  void emitTile(Value panel, Value column, MicroTile tile) {
    const unsigned alignment = unsigned(b.lanes * 4);
    const Type element = b.getF32Type();
    const VectorType vector = b.vectorOf(element);
    SmallVector<Value> sums;
    if (dot.acc) {
      for (Value pointer : panelPointers(dot.acc, dot.resultStorage, panel, column, tile.panels))
        for (int64_t j = 0; j < tile.columns; ++j)
          sums.push_back(b.load(vector, b.at(pointer, j * b.lanes, element), alignment));
    } else {
      sums.assign(size_t(tile.panels * tile.columns), b.real(vector, 0.0));
    }
    SmallVector<Value> aPanels = panelPointers(dot.a, dot.aStorage, panel, Value(), tile.panels);
    // B's element (k, j) is at k * stepK + j * stepJ from here.
    const int64_t stepJ = dot.transposeB ? dot.bStorage.rowWords() : 1;
    const int64_t stepK = dot.transposeB ? 1 : dot.bStorage.rowWords();
    Value bColumn = b.at(dot.b, b.mul(column, stepJ), element);
    Value zero = b.real(vector, 0.0);

    sums = b.loop(0, dot.aStorage.columns, 1, sums, [&](Value k, ValueRange carried) {
      SmallVector<Value> next(carried);
      SmallVector<Value> a, isUsed;
      for (Value pointer : aPanels) {
        a.push_back(b.load(vector, b.at(pointer, b.mul(k, b.lanes), element), alignment));
        if (dot.zeroAnnihilates)
          isUsed.push_back(arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, a.back(), zero));
      }
      Value row = b.at(bColumn, b.mul(k, stepK), element);
      for (int64_t j = 0; j < tile.columns; ++j) {
        Value scalar = b.splat(b.load(element, b.at(row, j * stepJ, element)));
        for (int64_t i = 0; i < tile.panels; ++i) {
          Value &sum = next[size_t(i * tile.columns + j)];
          if (!dot.zeroAnnihilates) {
            sum = b.fma(a[i], scalar, sum);
          } else if (b.lanes == 16) {
            // One masked multiply-add.
            sum = arith::SelectOp::create(b, isUsed[i], b.fma(a[i], scalar, sum), sum);
          } else {
            // Without mask registers a cleared B costs one `and`; 0 * 0 adds nothing.
            sum = b.fma(a[i], arith::SelectOp::create(b, isUsed[i], scalar, zero), sum);
          }
        }
      }
      return next;
    });

    SmallVector<Value> results = panelPointers(dot.result, dot.resultStorage, panel, column, tile.panels);
    for (int64_t i = 0; i < tile.panels; ++i)
      for (int64_t j = 0; j < tile.columns; ++j)
        b.store(sums[size_t(i * tile.columns + j)], b.at(results[i], j * b.lanes, element), alignment);
  }

  CpuBuilder &b;
  const DotOperands &dot;
};

} // namespace

MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked) {
  MicroTile best;
  for (int64_t p = 1; p <= std::min<int64_t>(panels, 4); ++p) {
    for (int64_t c = 1; c <= columns && fitsRegisters(lanes, masked, {p, c}); ++c) {
      const MicroTile candidate{p, c};
      if (cyclesPerStep(panels, columns, candidate) < cyclesPerStep(panels, columns, best))
        best = candidate;
    }
  }
  return best;
}

void lowerDot(CpuBuilder &b, const DotOperands &dot) { DotEmitter(b, dot).emit(); }

} // namespace nsa::cpu
