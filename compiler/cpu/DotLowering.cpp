#include "compiler/cpu/DotLowering.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace nsa::cpu {

using namespace mlir;

namespace {

// AVX-512 has 32 vector registers, and separate mask registers. AVX2 has 16 vector registers, which hold the masks as
// well; with more than 8 masked sums LLVM spills.
bool fitsRegisters(int64_t lanes, bool masked, const MicroTile &tile) {
  const int64_t sums = tile.panels * tile.columns;
  const int64_t operands = tile.panels + 1;
  if (lanes == 16)
    return sums <= 24 && sums + operands <= 32;
  return sums <= (masked ? 8 : 16 - operands);
}

// Estimated cycles of one step along k. The machine executes two multiply-adds and two loads per cycle, a multiply-add
// has a latency of four cycles, and the loop itself takes one cycle.
double cyclesPerStep(int64_t panels, int64_t columns) {
  if (columns == 0)
    return 0;
  const double multiplyAdds = double(panels * columns) / 2;
  const double loads = double(panels + columns) / 2;
  return std::max({multiplyAdds, loads, 4.0}) + 1;
}

double cyclesPerStep(int64_t panels, int64_t columns, const MicroTile &tile) {
  const int64_t wholeColumns = columns / tile.columns, wholePanels = panels / tile.panels;
  auto ofPanels = [&](int64_t count) {
    return double(wholeColumns) * cyclesPerStep(count, tile.columns) + cyclesPerStep(count, columns % tile.columns);
  };
  const int64_t rest = panels % tile.panels;
  return double(wholePanels) * ofPanels(tile.panels) + (rest ? ofPanels(rest) : 0.0);
}

// The multiply-adds in the emitted code: one loop body for whole tiles, and one for each kind of rest.
int64_t emittedMultiplyAdds(int64_t panels, int64_t columns, const MicroTile &tile) {
  auto bodies = [](int64_t size, int64_t step) { return (size >= step ? step : 0) + size % step; };
  return bodies(panels, tile.panels) * bodies(columns, tile.columns);
}

// Shapes within this factor count as equally fast. The estimates are not more precise, and more code takes longer to
// compile.
constexpr double kEquallyFast = 1.04;

class DotEmitter {
public:
  DotEmitter(CpuBuilder &b, const DotOperands &dot)
      : b(b), dot(dot), vectorBytes(b.lanes * 4), panelBytes(dot.resultStorage.panelWords() * 4),
        aPanelBytes(dot.transposeA ? vectorBytes : dot.aStorage.panelWords() * 4),
        aStepK(dot.transposeA ? dot.aStorage.rowWords() * 4 : vectorBytes),
        depth(dot.transposeA ? dot.aStorage.rows : dot.aStorage.columns),
        stepJ(dot.transposeB ? dot.bStorage.rowWords() * 4 : 4),
        stepK(dot.transposeB ? 4 : dot.bStorage.rowWords() * 4) {}

  void emit() {
    const int64_t panels = dot.resultStorage.panels();
    const MicroTile tile = chooseMicroTile(b.lanes, panels, dot.resultStorage.columns, dot.zeroAnnihilates);
    Place first = {dot.a, dot.b, dot.acc, dot.result, dot.firstRows};
    auto strides = [&](int64_t count) {
      return Strides{count * aPanelBytes, 0, count * panelBytes, count * vectorBytes};
    };
    walkPlaces(panels / tile.panels, first, strides(tile.panels), [&](const Place &place) { emitPanels(place, tile); });
    const int64_t done = panels / tile.panels * tile.panels;
    if (done < panels)
      emitPanels(moved(first, strides(done)), {panels - done, tile.columns});
  }

private:
  // The places where a block of the product starts: in A, in B, in the accumulator (null: zero), in the result, and in
  // tiles of rows (or null).
  struct Place {
    Value a, b, acc, result, rows;
  };
  // Bytes from one block to the next. The accumulator has the storage of the result.
  struct Strides {
    int64_t a, b, result, rows;
  };

  bool isInPlace() const { return dot.acc == dot.result; }

  Place moved(const Place &place, const Strides &by) {
    auto at = [&](Value pointer, int64_t bytes) { return pointer ? b.at(pointer, bytes) : pointer; };
    Value result = at(place.result, by.result);
    return {at(place.a, by.a), at(place.b, by.b), isInPlace() ? result : at(place.acc, by.result), result,
            at(place.rows, by.rows)};
  }

  void walkPlaces(int64_t count, const Place &first, const Strides &by, llvm::function_ref<void(const Place &)> body) {
    SmallVector<Cursor> cursors;
    SmallVector<Value Place::*> members;
    auto carry = [&](Value Place::*member, int64_t stride) {
      if (!(first.*member) || stride == 0)
        return;
      cursors.push_back({first.*member, stride});
      members.push_back(member);
    };
    carry(&Place::result, by.result);
    carry(&Place::a, by.a);
    carry(&Place::b, by.b);
    carry(&Place::rows, by.rows);
    if (!isInPlace())
      carry(&Place::acc, by.result);
    b.walk(count, cursors, [&](Value, ValueRange pointers) {
      Place place = first;
      for (auto [member, pointer] : llvm::zip_equal(members, pointers))
        place.*member = pointer;
      if (isInPlace())
        place.acc = place.result;
      body(place);
    });
  }

  void emitPanels(const Place &first, MicroTile tile) {
    const int64_t columns = dot.resultStorage.columns;
    walkPlaces(columns / tile.columns, first, {0, tile.columns * stepJ, tile.columns * vectorBytes, 0},
               [&](const Place &place) { emitTile(place, tile); });
    const int64_t done = columns / tile.columns * tile.columns;
    if (done < columns)
      emitTile(moved(first, {0, done * stepJ, done * vectorBytes, 0}), {tile.panels, columns - done});
  }

  void emitTile(const Place &place, MicroTile tile) {
    const unsigned alignment = unsigned(vectorBytes);
    const Type element = b.getF32Type();
    const VectorType vector = b.vectorOf(element);
    SmallVector<Value> sums;
    for (int64_t i = 0; i < tile.panels; ++i) {
      SmallVector<Value> panel;
      for (int64_t j = 0; j < tile.columns; ++j)
        panel.push_back(place.acc ? b.load(vector, b.at(place.acc, i * panelBytes + j * vectorBytes), alignment)
                                  : b.real(vector, 0.0));
      llvm::append_range(sums, dot.start ? dot.start(panel, b.at(place.rows, i * vectorBytes)) : panel);
    }
    Value zero = b.real(vector, 0.0);

    sums =
        b.walk(depth, {{place.a, aStepK}, {place.b, stepK}}, sums, [&](Value, ValueRange pointers, ValueRange carried) {
          SmallVector<Value> next(carried);
          SmallVector<Value> a, isUsed;
          for (int64_t i = 0; i < tile.panels; ++i) {
            a.push_back(b.load(vector, b.at(pointers[0], i * aPanelBytes), alignment));
            if (dot.zeroAnnihilates)
              isUsed.push_back(arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, a.back(), zero));
          }
          for (int64_t j = 0; j < tile.columns; ++j) {
            Value scalar = b.splat(b.load(element, b.at(pointers[1], j * stepJ)));
            for (int64_t i = 0; i < tile.panels; ++i) {
              Value &sum = next[size_t(i * tile.columns + j)];
              if (!dot.zeroAnnihilates) {
                sum = b.fma(a[i], scalar, sum);
              } else if (b.lanes == 16) {
                // This becomes one masked multiply-add.
                sum = arith::SelectOp::create(b, isUsed[i], b.fma(a[i], scalar, sum), sum);
              } else {
                // There are no mask registers. Clearing B costs one `and`, and the product 0 * 0 adds
                // nothing.
                sum = b.fma(a[i], arith::SelectOp::create(b, isUsed[i], scalar, zero), sum);
              }
            }
          }
          return next;
        });

    for (int64_t i = 0; i < tile.panels; ++i)
      for (int64_t j = 0; j < tile.columns; ++j)
        b.store(sums[size_t(i * tile.columns + j)], b.at(place.result, i * panelBytes + j * vectorBytes), alignment);
  }

  CpuBuilder &b;
  const DotOperands &dot;
  const int64_t vectorBytes;
  const int64_t panelBytes; // of one panel of the result
  // From one panel of A's vectors to the next, from one k to the next, and how many k there are.
  const int64_t aPanelBytes;
  const int64_t aStepK;
  const int64_t depth;
  // B's element (k, j) is k * stepK + j * stepJ bytes from its start.
  const int64_t stepJ;
  const int64_t stepK;
};

} // namespace

MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked) {
  std::vector<MicroTile> shapes;
  for (int64_t p = 1; p <= std::min<int64_t>(panels, 4); ++p)
    for (int64_t c = 1; c <= columns && fitsRegisters(lanes, masked, {p, c}); ++c)
      shapes.push_back({p, c});
  auto cycles = [&](const MicroTile &tile) { return cyclesPerStep(panels, columns, tile); };
  auto size = [&](const MicroTile &tile) {
    return std::tuple(emittedMultiplyAdds(panels, columns, tile), cycles(tile), tile.panels + tile.columns);
  };
  const double fastest = cycles(*std::ranges::min_element(shapes, {}, cycles));
  std::erase_if(shapes, [&](const MicroTile &tile) { return cycles(tile) > fastest * kEquallyFast; });
  return *std::ranges::min_element(shapes, {}, size);
}

void lowerDot(CpuBuilder &b, const DotOperands &dot) { DotEmitter(b, dot).emit(); }

} // namespace nsa::cpu
