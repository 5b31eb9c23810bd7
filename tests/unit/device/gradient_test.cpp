// Stores to views of gradients: of each element type, replaced and added, by every kind of tile. An element that two
// threads stored would be added twice.
#include "column.cuh"
#include "copy.cuh"
#include "gradient.cuh"
#include "guarded_matrix.h"
#include "striped.cuh"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kRows = 32, kWarps = 2, kThreads = 64, kSkipped = 5;

// Row r of a tile does not exist where r is a multiple of kSkipped.
bool exists(int row) { return row % kSkipped != 0; }

// Stores tiles of kRows x kCols elements of float to memory of `Held`, as gradients of T.
template <typename T, typename Held, int kCols> class Stores {
public:
  Stores(int columns, bool aligned, bool adds)
      : columns(columns), aligned(aligned), adds(adds), stride(aligned ? (columns + 7) / 8 * 8 : columns),
        source(kRows, columns, stride, 1), target(kRows, columns, stride, 2), before(kRows, columns, stride, 2) {}

  // `isPlaced`: the rows go where the elements of a vector say.
  template <template <typename, int32, int32, int32> class Tile> void ofTiles(bool isPlaced = false) {
    const View<float, 1> from = source.view(aligned);
    const View<Gradient<T>, 1> to = view();
    emulator::run({.threads = kThreads, .seed = 2}, [&] {
      const auto x =
          load_fragment<Tile<float, kRows, kCols, kWarps>>(from, columns, [&](int32 r) { return from.at(r); });
      if (!isPlaced)
        return store_tile(x, to, columns, [&](int32 r) { return to.at(r).only_if(exists(r)); });
      const auto store = [&](const auto &rows) {
        store_tile(x, to, columns, [&](int32, int32 place) { return to.at(place).only_if(exists(place)); }, rows);
      };
      if constexpr (kIsStriped<Tile<float, kRows, kCols, kWarps>>) {
        UniformRows<int32, kRows, kWarps> rows;
        for (int row = 0; row < kRows; ++row)
          rows.values[row] = row;
        store(rows);
      } else {
        RowVector<int32, kRows, kWarps> rows;
        for (int slab = 0; slab < rows.kSlabs; ++slab)
          for (int half = 0; half < 2; ++half)
            rows.values[slab][half] = rows.row(slab, half);
        store(rows);
      }
    });
    expectStored();
  }
  // One element for each row. The matrix has one column.
  template <typename Rows> void ofRows() {
    const View<float, 1> from = source.view(aligned);
    const View<Gradient<T>, 1> to = view();
    emulator::run({.threads = kThreads, .seed = 1}, [&] {
      const auto x = load_rows<Rows>(from, [&](int32 r) { return from.at(r); });
      store_rows(x, to, [&](int32 r) { return to.at(r).only_if(exists(r)); });
    });
    expectStored();
  }
  template <typename Columns> void ofColumns() {
    const View<float, 1> from = source.view(aligned);
    const View<Gradient<T>, 1> to = view();
    emulator::run({.threads = kThreads}, [&] {
      const auto x = load_columns<Columns>(from, [&](int32 c) { return from.at(c); });
      store_columns(x, to, [&](int32 c) { return to.at(c).only_if(exists(c)); });
    });
    expectStored();
  }

private:
  View<Gradient<T>, 1> view() {
    const uint64 flags = (aligned ? 1 : 0) | (kSameType<Held, float> ? 2 : 0) | (adds ? 4 : 0);
    return {{reinterpret_cast<T *>(&target.at(0, 0)), {stride}, flags}};
  }
  void expectStored() {
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < columns; ++column) {
        const float held = before.value(row, column), own = source.value(row, column);
        const float expected = !exists(row) ? held : to_float(to<Held>(adds ? held + own : own));
        ASSERT_EQ(target.value(row, column), expected) << row << ", " << column << (adds ? " added" : " replaced");
      }
  }

  const int columns;
  const bool aligned, adds;
  const int stride;
  GuardedMatrix<float> source;
  GuardedMatrix<Held> target, before;
};

template <typename T, typename Held> void checkHeld() {
  for (const bool adds : {false, true}) {
    for (const bool aligned : {false, true}) {
      Stores<T, Held, 64>(64, aligned, adds).template ofTiles<Fragment>();
      Stores<T, Held, 48>(33, aligned, adds).template ofTiles<Fragment>();
      Stores<T, Held, 24>(20, aligned, adds).template ofTiles<Fragment>(); // an odd number of column tiles
      Stores<T, Held, 576>(576, aligned, adds).template ofTiles<StripedTile>();
      Stores<T, Held, 576>(571, aligned, adds).template ofTiles<StripedTile>();
      Stores<T, Held, 48>(33, aligned, adds).template ofTiles<Fragment>(true);
      Stores<T, Held, 576>(571, aligned, adds).template ofTiles<StripedTile>(true);
    }
    Stores<T, Held, 8>(1, false, adds).template ofRows<RowVector<float, kRows, kWarps>>();
    Stores<T, Held, 8>(1, false, adds).template ofRows<UniformRows<float, kRows, kWarps>>();
    Stores<T, Held, 8>(1, false, adds).template ofColumns<ColumnVector<float, kRows>>();
    Stores<T, Held, 8>(1, false, adds).template ofColumns<StripedColumns<float, kRows, kWarps>>();
  }
}

TEST(Gradient, OfBf16) {
  checkHeld<bf16, bf16>();
  checkHeld<bf16, float>();
}

TEST(Gradient, OfF16) {
  checkHeld<f16, f16>();
  checkHeld<f16, float>();
}

TEST(Gradient, OfFloat) { checkHeld<float, float>(); }

} // namespace
