// Where things lie: packed compressed rows, single rows of a batch, pages.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/sequence.h"

#include <array>

namespace nsa::reference {
namespace {

TEST(Sequences, PackedCompressedRowsFollowEachOther) {
  const Spec spec{.cmpBlock = 4, .cmpStride = 2};
  // N_c: 0 below l, then one more for each d tokens.
  const std::vector<Sequence> sequences =
      packedSequences(std::array{0, 3, 3, 8, 9}, std::array{0, 3, 7, 15, 19}, spec); // T = 3, 4, 8, 4
  std::vector<int64_t> begins;
  for (const Sequence &sequence : sequences)
    begins.push_back(sequence.blockBegin);
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 0, 1, 4}));

  const std::vector<Sequence> compressed = compressedRows(sequences, spec);
  std::vector<int64_t> counts, rows;
  for (const Sequence &sequence : compressed) {
    counts.push_back(sequence.queries);
    rows.push_back(sequence.firstRow);
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{0, 1, 3, 1}));
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 0, 1, 4}));
}

TEST(Sequences, ASingleRowEndsWithItsQuery) {
  const std::vector<Sequence> sequences = denseSequences(2, 5, 9);
  const std::vector<Sequence> single = singleRows(sequences, std::array<int64_t, 2>{7, 0});
  ASSERT_EQ(single.size(), 2u);
  EXPECT_EQ(single[0].batch, 1);
  EXPECT_EQ(single[0].keyBatch, 1);
  EXPECT_EQ(single[0].queryBegin, 2);
  EXPECT_EQ(single[0].queries, 1);
  EXPECT_EQ(single[0].keys, 7); // query 2 of 5 stands at position 9 - 5 + 2
  EXPECT_EQ(single[0].position(0), sequences[1].position(2));
  EXPECT_EQ(single[0].firstRow, 7);
  EXPECT_EQ(single[1].keys, 5);
  EXPECT_EQ(rowEnd(single), 8);

  const std::vector<Sequence> renumbered = renumberRows(single);
  EXPECT_EQ(renumbered[0].firstRow, 0);
  EXPECT_EQ(renumbered[1].firstRow, 1);
  EXPECT_EQ(renumbered[0].queryBegin, 2);
}

TEST(Sequences, ReadRowsFollowsTheSequences) {
  std::mt19937_64 random(test::freshSeed());
  const OwnedTensor tensor = drawTensor(random, DType::kF32, 1, 10, 2, 3);
  const std::vector<Sequence> sequences = {{.queryBegin = 6, .queries = 2, .keys = 2, .firstRow = 1}};
  const std::vector<double> rows = readRows(sequences, tensor.view(), 2, 3);
  ASSERT_EQ(rows.size(), 3u * 2 * 3);
  EXPECT_EQ(rows[0], 0); // no sequence has row 0
  EXPECT_EQ(rows[1 * 6 + 1 * 3 + 2], tensor.view().at(0, 6, 1, 2));
  EXPECT_EQ(rows[2 * 6], tensor.view().at(0, 7, 0, 0));
}

TEST(TensorView, FollowsThePageTable) {
  std::mt19937_64 random(test::freshSeed());
  const OwnedTensor pool = drawTensor(random, DType::kBf16, 4, 3, 2, 5); // pages of 3 rows
  const std::array<int32_t, 4> table = {2, 0, 3, 1};                     // two pages for each sequence
  TensorView view = pool.view();
  view.pages = table;
  view.pagesPerSequence = 2;
  view.pageRows = 3;
  EXPECT_EQ(view.at(0, 1, 1, 4), pool.view().at(2, 1, 1, 4));
  EXPECT_EQ(view.at(0, 4, 0, 2), pool.view().at(0, 1, 0, 2));
  EXPECT_EQ(view.at(1, 5, 1, 0), pool.view().at(1, 2, 1, 0));
}

} // namespace
} // namespace nsa::reference
