// The template append on the CPU backend alone: step after step into a cache, every byte of pools, rings and staged
// rows against plain loops. Programs run in any order.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/cache_rows.h"
#include "tests/unit/cpu/gapped_tensor.h"
#include "tests/unit/cpu/template_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

namespace nsa::test {
namespace {

constexpr int32_t kSel = 1, kWin = 2, kCmp = 4, kAll = 7, kOnePool = 8; // kOnePool: what is new of win has no pool
constexpr int64_t kKvHeads = 2, kRoom = 130, kPoolPagesFree = 2;

struct Case {
  DType dtype;
  int32_t qkDim, vDim, block, stride, page; // page 0: none
  bool isPacked;
  std::vector<int32_t> most; // new tokens of a step, one bound after the other in turn
  int32_t branches = kAll;
  TemplateKernel::Pairs config{};
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << dtypeName(c.dtype) << " dims " << c.qkDim << "/" << c.vDim << " blocks " << c.block << "/" << c.stride
       << " page " << c.page << (c.isPacked ? " packed" : " dense") << " up to " << testing::PrintToString(c.most)
       << " branches " << c.branches << " " << formatValues(c.config);
}

using TensorPtr = std::unique_ptr<GappedTensor>;

// Keys and values alternate: sel, win, cmp.
constexpr int32_t kBranchOf[] = {kSel, kSel, kWin, kWin, kCmp, kCmp};
constexpr const char *kNews[] = {"k_sel", "v_sel", "k_win", "v_win", "k_cmp", "v_cmp"};
constexpr const char *kCaches[] = {"k_sel_cache", "v_sel_cache", "k_win_cache", "v_win_cache", "k_raw", "v_raw"};
constexpr const char *kStaged[] = {"k_staged", "v_staged"};

class Cache {
public:
  Cache(const Case &c, int64_t batch, const std::string &features, std::mt19937 &engine)
      : c(c), batch(batch), engine(engine), lengths(size_t(batch)), kernel("tile/append.tile", Operator::kAppend,
                                                                           {{"dtype", std::string(dtypeName(c.dtype))},
                                                                            {"qk_dim", std::to_string(c.qkDim)},
                                                                            {"v_dim", std::to_string(c.vDim)},
                                                                            {"cmp_block", std::to_string(c.block)},
                                                                            {"cmp_stride", std::to_string(c.stride)},
                                                                            {"page_size", std::to_string(c.page)}},
                                                                           c.config, features) {
    const int64_t pages = c.page ? (kRoom + c.page - 1) / c.page : 0;
    for (size_t i = 0; i < 6; ++i)
      for (TensorPtr *tensor : {&caches[i], &expected[i]})
        *tensor = i >= 4   ? make(batch, c.block, i)
                  : c.page ? make(batch * pages + kPoolPagesFree, c.page, i)
                           : make(batch, kRoom, i);
    table.resize(size_t(batch * pages + kPoolPagesFree));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), engine);
    tableStride = pages;
  }

  // The next tokens of each sequence, as many as `added` says: runs the kernel, then the loops, and compares.
  void step(const std::vector<int64_t> &added, GuardedBuffer::Against against) {
    drawNew(added);
    std::vector<CacheRow> rows(size_t(2 * batch));
    int64_t stagedRows = 1, before = 0;
    growths.clear();
    for (int64_t s = 0; s < batch; ++s) {
      growths.push_back({c.block, c.stride, int32_t(s), lengths[size_t(s)], added[size_t(s)], before, c.isPacked});
      rows[size_t(s)] = growths.back().attending();
      rows[size_t(batch + s)] = growths.back().compressing();
      before += added[size_t(s)];
      stagedRows += added[size_t(s)] + c.block - 1;
    }
    for (size_t i = 4; i < 6; ++i)
      for (TensorPtr *tensor : {&staged[i - 4], &expectedStaged[i - 4]})
        *tensor = std::make_unique<GappedTensor>(c.dtype, 1, stagedRows, kKvHeads, columns(i));
    launch(rows, *std::ranges::max_element(added), against);
    advance(added);
    for (size_t i = 0; i < 6; ++i)
      ASSERT_TRUE(caches[i]->equals(*expected[i])) << "cache of tensor " << i;
    for (size_t i = 0; i < 2; ++i)
      ASSERT_TRUE(staged[i]->equals(*expectedStaged[i])) << "staged rows of tensor " << i;
  }

  int64_t room(size_t sequence) const { return kRoom - lengths[sequence]; }

private:
  int64_t columns(size_t tensor) const { return tensor % 2 ? c.vDim : c.qkDim; }
  TensorPtr make(int64_t entries, int64_t rows, size_t tensor) const {
    return std::make_unique<GappedTensor>(c.dtype, entries, rows, kKvHeads, columns(tensor));
  }
  bool isOn(size_t tensor) const { return c.branches & kBranchOf[tensor]; }
  bool hasCache(size_t tensor) const { return isOn(tensor) && !(c.branches & kOnePool && kBranchOf[tensor] == kWin); }

  void drawNew(const std::vector<int64_t> &added) {
    const int64_t total = std::reduce(added.begin(), added.end());
    for (size_t i = 0; i < 6; ++i) {
      news[i] = make(c.isPacked ? 1 : batch, std::max<int64_t>(c.isPacked ? total : added[0], 1), i);
      for (int64_t entry = 0; entry < news[i]->batches; ++entry)
        for (int64_t time = 0; time < (c.isPacked ? total : added[0]); ++time)
          news[i]->draw(engine, entry, time);
    }
  }

  void launch(const std::vector<CacheRow> &rows, int64_t longest, GuardedBuffer::Against against) {
    GuardedBuffer given(rows.size() * sizeof(CacheRow));
    std::copy(rows.begin(), rows.end(), given.as<CacheRow>());
    Arguments arguments;
    for (size_t i = 0; i < 6; ++i)
      arguments.view(kNews[i], isOn(i) ? news[i]->data() : nullptr, news[i]->strides());
    for (size_t i = 0; i < 4; ++i) {
      void *data = hasCache(i) ? caches[i]->data() : nullptr;
      if (c.page)
        arguments.pagedView(kCaches[i], data, caches[i]->strides(), table.data(), tableStride);
      else
        arguments.view(kCaches[i], data, caches[i]->strides());
    }
    for (size_t i = 4; i < 6; ++i)
      arguments.view(kCaches[i], isOn(i) ? caches[i]->data() : nullptr, caches[i]->strides());
    for (size_t i = 0; i < 2; ++i)
      arguments.view(kStaged[i], isOn(i + 4) ? staged[i]->data() : nullptr, staged[i]->strides());
    arguments.view("sequences", given.as<void>(), {kSequenceFields, 1}).i32("batch", int32_t(batch));
    const Slots slots = kernel.slots(arguments);
    // The launcher may know a larger maximum.
    auto programs =
        kernel.programs({{"max_seqlen_q", longest + int64_t(engine() % 40)}, {"kv_heads", kKvHeads}, {"batch", batch}});
    std::shuffle(programs.begin(), programs.end(), engine);
    for (const auto &[x, y, z] : programs)
      kernel.program().runOnce(slots, against, x, y, z);
  }

  // What the step should have done.
  void advance(const std::vector<int64_t> &added) {
    for (size_t s = 0; s < size_t(batch); ++s) {
      const CacheGrowth &growth = growths[s];
      for (int64_t i = 0; i < added[s]; ++i)
        for (size_t tensor = 0; tensor < 4; ++tensor)
          if (hasCache(tensor)) {
            const int64_t token = growth.length + i;
            const int64_t entry = c.page ? table[s * size_t(tableStride) + size_t(token / c.page)] : int64_t(s);
            copyRow(*expected[tensor], entry, c.page ? token % c.page : token, *news[tensor], newEntry(s),
                    newRow(s, i));
          }
      for (size_t tensor = 4; tensor < 6; ++tensor)
        if (isOn(tensor)) {
          // Staged first: the ring still has the earlier rows.
          if (growth.newBlocks() > 0)
            for (int64_t token = growth.firstStaged(); token < growth.length + added[s]; ++token) {
              const int64_t row = growth.stagedBegin() + token - growth.firstStaged();
              if (token < growth.length)
                copyRow(*expectedStaged[tensor - 4], 0, row, *expected[tensor], int64_t(s), token % c.block);
              else
                copyRow(*expectedStaged[tensor - 4], 0, row, *news[tensor], newEntry(s),
                        newRow(s, token - growth.length));
            }
          for (int64_t i = std::max<int64_t>(0, added[s] - c.block); i < added[s]; ++i)
            copyRow(*expected[tensor], int64_t(s), (growth.length + i) % c.block, *news[tensor], newEntry(s),
                    newRow(s, i));
        }
      lengths[s] += added[s];
    }
  }

  int64_t newEntry(size_t sequence) const { return c.isPacked ? 0 : int64_t(sequence); }
  int64_t newRow(size_t sequence, int64_t i) const { return (c.isPacked ? growths[sequence].newBegin : 0) + i; }

  static void copyRow(GappedTensor &to, int64_t toEntry, int64_t toRow, GappedTensor &from, int64_t entry,
                      int64_t row) {
    for (int64_t head = 0; head < kKvHeads; ++head)
      for (int64_t column = 0; column < to.columns; ++column)
        to.set(to.index(toEntry, toRow, head, column), from.at(entry, row, head, column));
  }

  const Case &c;
  const int64_t batch;
  std::mt19937 &engine;
  std::vector<int64_t> lengths;
  std::vector<CacheGrowth> growths;
  std::vector<int32_t> table;
  int64_t tableStride = 0;
  std::array<TensorPtr, 6> news, caches, expected;
  std::array<TensorPtr, 2> staged, expectedStaged;
  TemplateKernel kernel;
};

class CpuAppend : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuAppend, EveryByteIsWhereItBelongs) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  for (int64_t batch : {1, 3}) {
    Cache cache(c, batch, features, engine);
    ASSERT_FALSE(HasFailure());
    for (size_t step = 0; cache.room(0) > 0 && step < 200; ++step) {
      SCOPED_TRACE(testing::Message() << "batch " << batch << " step " << step);
      const auto most = uint64_t(c.most[step % c.most.size()]);
      std::vector<int64_t> added;
      for (size_t s = 0; s < size_t(batch); ++s)
        added.push_back(c.isPacked ? std::min<int64_t>(int64_t(engine() % (most + 1)), cache.room(s))
                                   : std::min<int64_t>(int64_t(most), cache.room(s)));
      cache.step(added, step % 2 ? GuardedBuffer::Against::kEnd : GuardedBuffer::Against::kStart);
      if (HasFatalFailure())
        return;
    }
  }
}

constexpr DType kBf16 = DType::kBf16, kF16 = DType::kF16, kF32 = DType::kF32;

const Case kCases[] = {
    {kBf16, 64, 48, 16, 8, 0, false, {1}},              // token by token, the ring over and over
    {kBf16, 128, 128, 32, 16, 64, false, {1, 1, 1, 5}}, // the geometry of the paper, in pages
    {kF16, 33, 7, 4, 4, 12, true, {1, 30, 2, 0}},       // more than a block at once, and none
    {kF32, 40, 72, 32, 4, 32, true, {9, 70}, kAll, {{"column_tile", "32"}, {"row_tile", "16"}}}, // chunks and tiles
    {kF32, 40, 72, 12, 4, 0, false, {17, 1, 3}, kAll, {{"row_tile", "32"}}},
    {kF32, 1, 1, 1, 1, 3, true, {2, 3, 1}}, // every token is a block
    {kF32, 5, 259, 7, 1, 0, true, {6, 7, 8, 1}, kAll, {{"row_tile", "64"}}},
    {kF32, 16, 16, 64, 16, 16, false, {130}}, // a prompt in one piece
    {kF16, 16, 8, 20, 5, 0, true, {19, 20, 21, 3}},
    {kBf16, 16, 24, 8, 4, 8, true, {3, 11}, kSel},
    {kBf16, 16, 24, 8, 4, 0, true, {3, 11}, kWin},
    {kBf16, 16, 24, 8, 4, 8, true, {3, 11}, kCmp},
    {kF32, 16, 24, 8, 4, 0, false, {3, 11}, kSel | kCmp},
    {kF32, 16, 24, 8, 4, 8, false, {3, 11}, kAll | kOnePool}, // sel has written it
};
INSTANTIATE_TEST_SUITE_P(Cases, CpuAppend,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAppend);

// A sequence that cache_sequences has refused has rows of zeros: nothing of it is touched.
class CpuAppendRefused : public testing::TestWithParam<std::string> {};

TEST_P(CpuAppendRefused, NothingIsTouched) {
  std::mt19937 engine(freshSeed());
  const TemplateKernel kernel(
      "tile/append.tile", Operator::kAppend,
      {{"dtype", "fp32"}, {"qk_dim", "8"}, {"v_dim", "8"}, {"cmp_block", "4"}, {"cmp_stride", "4"}, {"page_size", "0"}},
      {}, GetParam());
  GappedTensor news(kF32, 2, 6, kKvHeads, 8), pool(kF32, 2, 20, kKvHeads, 8), ring(kF32, 2, 4, kKvHeads, 8);
  GappedTensor staged(kF32, 1, 20, kKvHeads, 8), untouched(kF32, 1, 20, kKvHeads, 8);
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int64_t time = 0; time < 6; ++time)
      news.draw(engine, entry, time);
  GappedTensor poolBefore(kF32, 2, 20, kKvHeads, 8), ringBefore(kF32, 2, 4, kKvHeads, 8);
  const CacheRow rows[4] = {};
  Arguments arguments;
  for (const char *name : kNews)
    arguments.view(name, news.data(), news.strides());
  for (size_t i = 0; i < 6; ++i)
    arguments.view(kCaches[i], (i < 4 ? pool : ring).data(), (i < 4 ? pool : ring).strides());
  for (const char *name : kStaged)
    arguments.view(name, staged.data(), staged.strides());
  arguments.view("sequences", rows, {kSequenceFields, 1}).i32("batch", 2);
  kernel.run(arguments, {{"max_seqlen_q", 6}, {"kv_heads", kKvHeads}, {"batch", 2}});
  EXPECT_TRUE(pool.equals(poolBefore));
  EXPECT_TRUE(ring.equals(ringBefore));
  EXPECT_TRUE(staged.equals(untouched));
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuAppendRefused, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAppendRefused);

} // namespace
} // namespace nsa::test
