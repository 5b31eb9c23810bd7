// Views of pages on the CPU, over shuffled pages. Memory that was not written is NaN. A table's entries behind a
// sequence's last page are far outside of the pool, and memory that faults follows the entries of the last sequence.
#include "runtime/base/half.h"
#include "tests/harness/seed.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace nsa::test {
namespace {

constexpr int64_t kHeads = 2, kColumns = 13, kTileRows = 40;
constexpr int64_t kSparePages = 3; // no sequence's

std::mt19937 &generator() {
  static std::mt19937 engine(freshSeed());
  return engine;
}

float draw() { return std::uniform_real_distribution<float>(-2, 2)(generator()); }

int64_t pagesOf(int64_t rows, int64_t pageRows) { return (rows + pageRows - 1) / pageRows; }

// A cache of sequences of these lengths in pages of `pageRows` rows.
template <typename T> class PagedRows {
public:
  // tableDown: the table's rows are stored last first, so that their distance is negative.
  PagedRows(std::vector<int64_t> lengths, int64_t pageRows, bool tableDown)
      : lengths(std::move(lengths)), pageRows(pageRows), pool(poolBytes()),
        table(tableBytes(tableDown ? this->lengths.front() : this->lengths.back())) {
    std::vector<int32_t> shuffled;
    shuffled.resize(size_t(pages()));
    std::iota(shuffled.begin(), shuffled.end(), 0);
    std::shuffle(shuffled.begin(), shuffled.end(), generator());
    std::fill_n(table.template as<int32_t>(), table.size() / 4, std::numeric_limits<int32_t>::max());
    const int64_t sequences = int64_t(this->lengths.size());
    tableStride = tableDown ? -tableColumns() : tableColumns();
    tableStart = table.template as<int32_t>() + (tableDown ? (sequences - 1) * tableColumns() : 0);
    auto next = shuffled.begin();
    for (int64_t sequence = 0; sequence < sequences; ++sequence)
      for (int64_t page = 0; page < pagesOf(this->lengths[size_t(sequence)], pageRows); ++page)
        tableStart[sequence * tableStride + page] = *next++;
  }

  T *row(int64_t sequence, int64_t time, int64_t head) {
    const int32_t page = tableStart[sequence * tableStride + time / pageRows];
    return pool.template as<T>() + (page * pageRows + time % pageRows) * rowStride() + head * kColumns;
  }
  // Draws all rows of all sequences.
  void fill(T (*encode)(float)) {
    for (size_t sequence = 0; sequence < lengths.size(); ++sequence)
      for (int64_t time = 0; time < lengths[sequence]; ++time)
        for (int64_t head = 0; head < kHeads; ++head)
          std::generate_n(row(int64_t(sequence), time, head), kColumns, [&] { return encode(draw()); });
  }
  void addTo(Slots &slots) {
    slots.pagedView(pool.template as<void>(), {pageRows * rowStride(), rowStride(), kColumns}, tableStart, tableStride);
  }

  const std::vector<int64_t> lengths;
  const int64_t pageRows;
  GuardedBuffer pool; // NaN at first

private:
  static int64_t rowStride() { return kHeads * kColumns + 3; }
  int64_t pages() const {
    int64_t count = kSparePages;
    for (int64_t length : lengths)
      count += pagesOf(length, pageRows);
    return count;
  }
  size_t poolBytes() const { return size_t(pages() * pageRows * rowStride()) * sizeof(T); }
  int64_t tableColumns() const { return pagesOf(*std::max_element(lengths.begin(), lengths.end()), pageRows) + 2; }
  // It ends with the last page of the sequence whose row comes last.
  size_t tableBytes(int64_t lastLength) const {
    return size_t((int64_t(lengths.size()) - 1) * tableColumns() + pagesOf(lastLength, pageRows)) * 4;
  }

  GuardedBuffer table;
  int32_t *tableStart = nullptr;
  int64_t tableStride = 0;
};

struct Pages {
  int64_t rows;
  std::string features;
};
void PrintTo(const Pages &pages, std::ostream *out) { *out << pages.rows << " " << pages.features; }

std::vector<Pages> allPages() {
  std::vector<Pages> all;
  for (const std::string &features : runnableFeatures())
    for (int64_t rows : {1, 5, 64})
      all.push_back({rows, features});
  return all;
}

class CpuPages : public testing::TestWithParam<Pages> {};
INSTANTIATE_TEST_SUITE_P(Pages, CpuPages, testing::ValuesIn(allPages()), [](const auto &info) {
  return std::to_string(info.param.rows) + "_" + info.param.features.substr(7);
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuPages);

constexpr const char *kRows = R"(rows(%r) {
        %time = arith.addi %first, %r : i32
        %began = arith.cmpi sge, %time, %zero : i32
        %goes_on = arith.cmpi slt, %time, %past : i32
        %exists = arith.andi %began, %goes_on : i1
        tile.at [%sequence, %time, %head] if %exists
      })";

std::string fillText(std::string text, const Pages &pages, std::map<std::string, std::string> more = {}) {
  more["P"] = std::to_string(pages.rows);
  more["M"] = std::to_string(kTileRows);
  more["N"] = std::to_string(kColumns);
  more["ROWS"] = kRows;
  return fill(std::move(text), more);
}

// Tiles that begin before a sequence, lie in it, and end after it or lie behind it.
std::vector<int64_t> beginnings(int64_t length) { return {-7, 0, 3, length - 11, length - 1, length, length + 200}; }

// From one pool to another, each with its own table.
template <typename T>
void checkCopy(const Pages &pages, const std::string &element, T (*encode)(float), bool tableDown) {
  TileKernel kernel(fillText(R"(
    func.func @f(%x: !tile.view<${T}, 3, ${P}>, %y: !tile.view<${T}, 3, ${P}>, %first: i32, %past: i32, %head: i32) {
      %zero = arith.constant 0 : i32
      %sequence = tile.program_id z
      %t = tile.load %x ${ROWS} : !tile.view<${T}, 3, ${P}> -> tensor<${M}x${N}x${T}>
      tile.store %t, %y ${ROWS} : tensor<${M}x${N}x${T}>, !tile.view<${T}, 3, ${P}>
      return
    })",
                             pages, {{"T", element}}),
                    pages.features);
  const std::vector<int64_t> lengths = {129, 1, 67};
  PagedRows<T> x(lengths, pages.rows, tableDown);
  x.fill(encode);
  for (size_t sequence = 0; sequence < lengths.size(); ++sequence)
    for (const int64_t first : beginnings(lengths[sequence]))
      for (int64_t head = 0; head < kHeads; ++head) {
        PagedRows<T> y(lengths, pages.rows, tableDown);
        Slots slots;
        x.addTo(slots);
        y.addTo(slots);
        slots.i32(int32_t(first)).i32(int32_t(lengths[sequence])).i32(int32_t(head));
        kernel.run(slots, 0, 0, int32_t(sequence));
        for (int64_t time = std::max<int64_t>(first, 0); time < std::min(first + kTileRows, lengths[sequence]);
             ++time) {
          T *row = y.row(int64_t(sequence), time, head);
          ASSERT_EQ(std::memcmp(row, x.row(int64_t(sequence), time, head), kColumns * sizeof(T)), 0)
              << "sequence " << sequence << " first " << first << " time " << time;
          std::memset(row, 0xff, kColumns * sizeof(T));
        }
        const auto *bytes = y.pool.template as<unsigned char>();
        ASSERT_TRUE(std::all_of(bytes, bytes + y.pool.size(), [](unsigned char byte) { return byte == 0xff; }))
            << "sequence " << sequence << " first " << first << ": wrote what is no row of the tile";
      }
}

TEST_P(CpuPages, CopyF32) {
  for (bool tableDown : {false, true})
    checkCopy<float>(GetParam(), "f32", [](float value) { return value; }, tableDown);
}
TEST_P(CpuPages, CopyBf16) { checkCopy<uint16_t>(GetParam(), "bf16", floatToBf16, false); }

// Rows that do not exist are zero, whatever the pool holds: in lanes (q), by rows (k), and one element a row (bias).
// The view is one of two, and a scalar comes through a table too.
TEST_P(CpuPages, ProductsOfChosenViews) {
  TileKernel kernel(fillText(R"(
    func.func @f(%x: !tile.view<f32, 3, ${P}>, %other: !tile.view<f32, 3, ${P}>, %y: !tile.view<f32, 1>, %first: i32,
                 %past: i32, %head: i32, %is_other: i32) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %yes = arith.constant true
      %sequence = tile.program_id z
      %takes_other = arith.cmpi ne, %is_other, %zero : i32
      %view = arith.select %takes_other, %other, %x : !tile.view<f32, 3, ${P}>
      %last = arith.subi %past, %one : i32
      %scale = tile.load_scalar %view[%sequence, %last, %head] : !tile.view<f32, 3, ${P}>
      %q = tile.load %view ${ROWS} : !tile.view<f32, 3, ${P}> -> tensor<${M}x${N}xf32>
      %k = tile.load %view ${ROWS} : !tile.view<f32, 3, ${P}> -> tensor<${M}x${N}xf32>
      %bias = tile.load %view ${ROWS} : !tile.view<f32, 3, ${P}> -> tensor<${M}xf32>
      %none = arith.constant dense<0.0> : tensor<${M}x${M}xf32>
      %s = tile.dot %q, %k, %none {transpose_b} : tensor<${M}x${N}xf32>, tensor<${M}x${N}xf32> -> tensor<${M}x${M}xf32>
      %wide = tile.broadcast %bias : tensor<${M}xf32> -> tensor<${M}x${M}xf32>
      %scales = tile.splat %scale : tensor<${M}x${M}xf32>
      %z = math.fma %s, %scales, %wide : tensor<${M}x${M}xf32>
      tile.store %z, %y rows(%r) {
        tile.at [%r] if %yes
      } : tensor<${M}x${M}xf32>, !tile.view<f32, 1>
      return
    })",
                             GetParam()),
                    GetParam().features);
  const std::vector<int64_t> lengths = {90, 3, 61};
  PagedRows<float> x(lengths, GetParam().rows, false), other(lengths, GetParam().rows, false);
  for (PagedRows<float> *rows : {&x, &other})
    rows->fill([](float value) { return value; });
  for (int64_t sequence = 0; sequence < int64_t(lengths.size()); ++sequence)
    for (const int64_t first : beginnings(lengths[size_t(sequence)]))
      for (bool isOther : {false, true}) {
        const int64_t past = lengths[size_t(sequence)], head = sequence % kHeads;
        GuardedBuffer y(kTileRows * kTileRows * 4);
        Slots slots;
        x.addTo(slots);
        other.addTo(slots);
        slots.view(y.as<void>(), {kTileRows}).i32(int32_t(first)).i32(int32_t(past)).i32(int32_t(head)).i32(isOther);
        kernel.run(slots, 0, 0, int32_t(sequence));
        PagedRows<float> &chosen = isOther ? other : x;
        const auto value = [&](int64_t row, int64_t column) {
          const int64_t time = first + row;
          return time < 0 || time >= past ? 0.0 : double(chosen.row(sequence, time, head)[column]);
        };
        const double scale = double(*chosen.row(sequence, past - 1, head));
        for (int64_t i = 0; i < kTileRows; ++i)
          for (int64_t j = 0; j < kTileRows; ++j) {
            double expected = value(i, 0), size = std::fabs(expected);
            for (int64_t c = 0; c < kColumns; ++c) {
              expected += scale * value(i, c) * value(j, c);
              size += std::fabs(scale * value(i, c) * value(j, c));
            }
            ASSERT_NEAR(y.as<float>()[i * kTileRows + j], expected, 1e-6 * size)
                << "sequence " << sequence << " first " << first << " at " << i << ", " << j;
          }
      }
}

// One element a row goes out through a table.
TEST_P(CpuPages, StoresOneElementPerRow) {
  TileKernel kernel(fillText(R"(
    func.func @f(%y: !tile.view<i32, 3, ${P}>, %first: i32, %past: i32, %head: i32) {
      %zero = arith.constant 0 : i32
      %sequence = tile.program_id z
      %i = tile.iota 0 : tensor<${M}xi32>
      tile.store %i, %y ${ROWS} : tensor<${M}xi32>, !tile.view<i32, 3, ${P}>
      return
    })",
                             GetParam()),
                    GetParam().features);
  const std::vector<int64_t> lengths = {20, 33};
  PagedRows<int32_t> y(lengths, GetParam().rows, false);
  for (int32_t sequence = 0; sequence < 2; ++sequence) {
    Slots slots;
    y.addTo(slots);
    slots.i32(-2).i32(int32_t(lengths[size_t(sequence)])).i32(1);
    kernel.run(slots, 0, 0, sequence);
  }
  for (int64_t sequence = 0; sequence < 2; ++sequence)
    for (int64_t time = 0; time < lengths[size_t(sequence)]; ++time) {
      EXPECT_EQ(*y.row(sequence, time, 1), time + 2 < kTileRows ? time + 2 : -1) << sequence << " " << time;
      EXPECT_EQ(*y.row(sequence, time, 0), -1) << "of the other head";
    }
}

} // namespace
} // namespace nsa::test
