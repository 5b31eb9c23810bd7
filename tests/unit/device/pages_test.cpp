// Views of pages: each row comes from and goes to the page that the table says, and the table, which ends with its last
// page and is poisoned behind the others, is asked only for rows that exist.
#include "copy.cuh"
#include "dot.cuh"
#include "guarded_matrix.h"
#include "paged_view.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kTile = 32, kWarps = 2, kThreads = 64;
constexpr int kSequences = 2, kTokens[kSequences] = {70, 41};

// Rows of the sequences in pages of kPageRows, shuffled in one pool; what is no sequence's is NaN.
template <typename T, int kPageRows> class Pool {
public:
  Pool(int columns, int stride, unsigned seed)
      : rows(kPages * kPageRows, columns, stride, seed),
        table(1, kTableStride + pagesOf(1), kTableStride + pagesOf(1), seed) {
    std::vector<int32_t> shuffled(kPages), entries(kTableStride + pagesOf(1), std::numeric_limits<int32_t>::max());
    std::iota(shuffled.begin(), shuffled.end(), 0);
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(seed));
    for (int sequence = 0, next = 0; sequence < kSequences; ++sequence)
      for (int page = 0; page < pagesOf(sequence); ++page)
        entries[sequence * kTableStride + page] = shuffled[next++];
    std::memcpy(&table.at(0, 0), entries.data(), entries.size() * sizeof(int32_t));
    std::vector<bool> isOwned(rows.rows);
    for (int sequence = 0; sequence < kSequences; ++sequence)
      for (int time = 0; time < kTokens[sequence]; ++time)
        isOwned[rowOf(sequence, time)] = true;
    for (int row = 0; row < rows.rows; ++row)
      for (int column = 0; column < columns; ++column)
        if (!isOwned[row])
          rows.at(row, column) = to<T>(NAN);
  }

  PagedView<T, 2, kPageRows> view(bool aligned) {
    return {{&rows.at(0, 0), {kPageRows * rows.stride, rows.stride}, aligned ? 1u : 0u}, entries(), kTableStride};
  }
  float value(int sequence, int time, int column) { return rows.value(rowOf(sequence, time), column); }

  GuardedMatrix<T> rows;

private:
  static constexpr int pagesOf(int sequence) { return (kTokens[sequence] + kPageRows - 1) / kPageRows; }
  static constexpr int kTableStride = pagesOf(0) + 2;
  static constexpr int kPages = pagesOf(0) + pagesOf(1) + 2;

  const int32_t *entries() { return reinterpret_cast<const int32_t *>(&table.at(0, 0)); }
  int rowOf(int sequence, int time) {
    return entries()[sequence * kTableStride + time / kPageRows] * kPageRows + time % kPageRows;
  }

  GuardedMatrix<float> table; // holds int32
};

// Rows from `first` on, some of them before the sequence or behind it, through both ways into registers and back out.
template <typename T, int kCols, int kPageRows> void copyPages(bool aligned, int first) {
  constexpr int kColumns = kCols - 2, kGranule = 16 / static_cast<int>(sizeof(T));
  const int stride = aligned ? (kColumns + kGranule - 1) / kGranule * kGranule : kColumns + 1;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    SCOPED_TRACE(testing::Message() << "sequence " << sequence << " first " << first << " page " << kPageRows
                                    << (aligned ? " aligned" : ""));
    Pool<T, kPageRows> source(kColumns, stride, 1), target(kColumns, stride, 2), untouched(kColumns, stride, 2);
    const PagedView<T, 2, kPageRows> from = source.view(aligned), to = target.view(aligned);
    const int past = kTokens[sequence];
    const auto isStored = [&](int time) { return time >= std::max(first, 0) && time < std::min(first + kTile, past); };
    emulator::run({.threads = kThreads, .seed = 2}, [&] {
      const SharedTile<T, kTile, kCols> tile(emulator::sharedMemory());
      const auto rowOf = [&](const PagedView<T, 2, kPageRows> &view) {
        return [&, first](int32 r) { return view.at_if(first + r >= 0 && first + r < past, sequence, first + r); };
      };
      load_tile<kThreads>(tile, from, kColumns, rowOf(from));
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      using Registers = Fragment<T, kTile, kCols, kWarps>;
      const auto direct = load_fragment<Registers>(from, kColumns, rowOf(from));
      if constexpr (kIsHalf<T>) {
        const auto staged = load_operand<Registers>(tile);
        for (int tileIndex = 0; tileIndex < staged.kTiles; ++tileIndex)
          for (int half = 0; half < 2; ++half)
            emulator::check(staged.pairs[0][tileIndex][half].bits == direct.pairs[0][tileIndex][half].bits,
                            "staged and direct differ");
      }
      for (int tileIndex = 0; tileIndex < direct.kTiles; ++tileIndex)
        for (int half = 0; half < 2; ++half)
          for (int index = 0; index < 2; ++index) {
            const int time = first + direct.row(0, half), column = direct.column(tileIndex, index);
            const float expected = isStored(time) && column < kColumns ? source.value(sequence, time, column) : 0;
            emulator::check(to_float(direct.get(0, tileIndex, half, index)) == expected, "a loaded element is wrong");
          }
      store_tile(direct, to, kColumns, rowOf(to));
    });
    for (int other = 0; other < kSequences; ++other)
      for (int time = 0; time < kTokens[other]; ++time)
        for (int column = 0; column < kColumns; ++column)
          EXPECT_EQ(target.value(other, time, column), other == sequence && isStored(time)
                                                           ? source.value(other, time, column)
                                                           : untouched.value(other, time, column))
              << other << ", " << time << ", " << column;
  }
}

template <typename T, int kCols, int kPageRows> void copyPages() {
  for (bool aligned : {true, false})
    for (int first : {-5, 0, 30, 41, 69, 500})
      copyPages<T, kCols, kPageRows>(aligned, first);
}

TEST(Pages, OfOneRow) { copyPages<bf16, 64, 1>(); }
TEST(Pages, OfAnOddNumberOfRows) { copyPages<bf16, 64, 5>(); }
TEST(Pages, OfAPowerOfTwo) { copyPages<f16, 48, 16>(); }
TEST(Pages, LongerThanATile) { copyPages<bf16, 80, 64>(); }
TEST(Pages, OfFloatRows) { copyPages<float, 40, 5>(); }

// One element per row, and a scalar.
TEST(Pages, OneElementPerRow) {
  constexpr int kPageRows = 5, kSequence = 1, kPast = kTokens[kSequence], kFirst = kPast - 20;
  Pool<float, kPageRows> source(1, 1, 1), target(1, 1, 2), untouched(1, 1, 2);
  const PagedView<float, 2, kPageRows> from = source.view(false), to = target.view(false);
  emulator::run({.threads = kThreads}, [&] {
    const auto rows = load_rows<RowVector<float, kTile, kWarps>>(
        from, [&](int32 r) { return from.at_if(kFirst + r < kPast, kSequence, kFirst + r); });
    store_rows(rows, to, [&](int32 r) { return to.at_if(r >= 10 && kFirst + r < kPast, kSequence, kFirst + r); });
    emulator::check(load_scalar(from, kSequence, kPast - 1) == source.value(kSequence, kPast - 1, 0),
                    "a scalar is wrong");
  });
  for (int time = 0; time < kPast; ++time)
    EXPECT_EQ(target.value(kSequence, time, 0),
              time >= kFirst + 10 ? source.value(kSequence, time, 0) : untouched.value(kSequence, time, 0));
}

} // namespace
