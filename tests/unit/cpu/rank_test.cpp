// The template `rank` on the CPU backend alone, as `rank` and as `choose`, against a sort: segments and none, lists
// longer than what there is, ties within a segment and across, scores of blocks that are no numbers, and whatever may
// stand behind the last block.
#include "compiler/driver/Target.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/render/TileHeader.h"
#include "tests/harness/seed.h"
#include "tests/unit/cpu/guarded_tensor.h"
#include "tests/unit/cpu/template_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kUntouched = -7;
constexpr int64_t kKvHeads = 2;

int64_t roundUp(int64_t value, int64_t granule) { return (value + granule - 1) / granule * granule; }

struct Case {
  int32_t selBlock, selCount, segment, blockTile;
  std::vector<int32_t> lengths; // of sequences, with their queries
  int32_t queries = 1;
  int32_t mostKeys = 0; // 0: the longest sequence's

  int64_t slots() const { return roundUp(selCount, 16); }
  int32_t longest() const { return std::max(mostKeys, *std::max_element(lengths.begin(), lengths.end())); }
  int64_t mostBlocks() const { return (longest() + selBlock - 1) / selBlock; }
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << c.selCount << " blocks of " << c.selBlock << " in segments of " << c.segment << ", " << c.blockTile
       << " rows, lengths " << testing::PrintToString(c.lengths) << " with " << c.queries << " queries, at most "
       << c.mostKeys;
}

// What stands in a row, best first; of equals the lower block.
struct Scored {
  float score;
  int32_t block;
};
std::vector<Scored> sorted(const std::vector<float> &scores, int64_t first, int64_t past) {
  std::vector<Scored> all;
  for (int64_t block = first; block < past; ++block)
    all.push_back({scores[size_t(block)], int32_t(block)});
  std::sort(all.begin(), all.end(), [](const Scored &a, const Scored &b) {
    return a.score > b.score || (a.score == b.score && a.block < b.block);
  });
  return all;
}

class Selection {
public:
  Selection(const Case &c, const std::string &features)
      : c(c), blocks(roundUp(c.mostBlocks(), 128)),
        kept(c.segment ? roundUp((c.mostBlocks() + c.segment - 1) / c.segment * c.slots(), 128) : 0),
        choose("tile/rank.tile", Operator::kChoose, fixed(), pinned(), features) {
    if (c.segment)
      rank = std::make_unique<TemplateKernel>("tile/rank.tile", Operator::kRank, fixed(), pinned(), features);
  }

  int64_t batch() const { return int64_t(c.lengths.size()); }
  int64_t rows() const { return batch() * c.queries; }

  // `draw(row, head, block)` gives the score of a block that exists.
  template <typename Draw> void expectTheFirst(const Draw &draw) {
    GuardedTensor scores(DType::kF32, 1, rows(), kKvHeads, blocks);
    GuardedTensor keptScores(DType::kF32, 1, rows(), kKvHeads, std::max<int64_t>(kept, 1));
    GuardedBuffer keptBlocks(size_t(4 * rows() * kKvHeads * std::max<int64_t>(kept, 1)), GuardedBuffer::Against::kEnd);
    GuardedBuffer lists(size_t(4 * rows() * kKvHeads * c.selCount), GuardedBuffer::Against::kEnd);
    std::fill_n(keptBlocks.as<int32_t>(), rows() * kKvHeads * std::max<int64_t>(kept, 1), kUntouched);
    std::fill_n(lists.as<int32_t>(), rows() * kKvHeads * c.selCount, kUntouched);

    std::vector<int32_t> table;
    for (int64_t s = 0; s < batch(); ++s) {
      const int32_t queries = std::min(c.queries, c.lengths[size_t(s)]);
      for (int32_t field : {0, queries, 0, c.lengths[size_t(s)], 0, 0, int32_t(s), int32_t(s)})
        table.push_back(field);
    }
    // Behind the last block stands what was there before: the greatest scores and NaN.
    std::vector<std::vector<float>> drawn;
    for (int64_t row = 0; row < rows(); ++row)
      for (int64_t head = 0; head < kKvHeads; ++head) {
        std::vector<float> &own = drawn.emplace_back();
        for (int64_t block = 0; block < blocks; ++block) {
          const bool exists = block < pastOf(row);
          own.push_back(exists ? draw(row, head, block) : block % 2 ? kInfinity : std::nanf(""));
          scores.set(0, row, head, block, own.back());
        }
      }

    const auto bound = [&](GuardedTensor &source, int64_t columns, const int32_t *of, float *toScores, int32_t *to,
                           int64_t toColumns) {
      const std::vector<int64_t> strides = {kKvHeads * columns, columns};
      const auto with = [&](int64_t last) { return std::vector<int64_t>{strides[0], strides[1], last}; };
      Arguments arguments;
      arguments.view("scores", source.memory.as<void>(), with(1));
      arguments.view("score_rows", source.memory.as<void>(), with(16)).view("score_blocks", of, with(1));
      arguments.view("best_scores", toScores, {kKvHeads * toColumns, toColumns, 1});
      arguments.view("best_blocks", to, {kKvHeads * toColumns, toColumns, 1}).view("sequences", table.data(), {8, 1});
      return arguments.i32("seqlen_q", c.queries).i32("max_seqlen_k", c.longest());
    };
    const std::map<std::string, int64_t> sizes = {
        {"batch", batch()}, {"kv_heads", kKvHeads}, {"max_seqlen_q", c.queries}, {"max_seqlen_k", c.longest()}};
    if (rank) {
      rank->run(bound(scores, blocks, nullptr, keptScores.memory.as<float>(), keptBlocks.as<int32_t>(), kept), sizes);
      expectKept(drawn, keptScores, keptBlocks.as<int32_t>());
      choose.run(bound(keptScores, kept, keptBlocks.as<int32_t>(), nullptr, lists.as<int32_t>(), c.selCount), sizes);
    } else {
      choose.run(bound(scores, blocks, nullptr, nullptr, lists.as<int32_t>(), c.selCount), sizes);
    }
    for (int64_t row = 0; row < rows(); ++row)
      for (int64_t head = 0; head < kKvHeads; ++head) {
        const int64_t line = row * kKvHeads + head, past = pastOf(row);
        const std::vector<Scored> expected = sorted(drawn[size_t(line)], 0, past);
        for (int64_t slot = 0; slot < c.selCount; ++slot)
          ASSERT_EQ(lists.as<int32_t>()[line * c.selCount + slot], past == 0      ? kUntouched
                                                                   : slot >= past ? -1
                                                                                  : expected[size_t(slot)].block)
              << "row " << row << " head " << head << " slot " << slot << " of " << past << " blocks";
      }
  }

private:
  TemplateKernel::Pairs fixed() const {
    return {{"dtype", "fp32"},
            {"sel_block", std::to_string(c.selBlock)},
            {"sel_count", std::to_string(c.selCount)},
            {"segment", std::to_string(c.segment)},
            {"many_queries", "0"}};
  }
  TemplateKernel::Pairs pinned() const { return {{"block_tile", std::to_string(c.blockTile)}}; }

  // Rows of queries that are not there see nothing: the first ones of a sequence have the first rows.
  int64_t pastOf(int64_t row) const {
    const int64_t sequence = row / c.queries, query = row % c.queries;
    const int64_t queries = std::min(c.queries, c.lengths[size_t(sequence)]);
    return query < queries ? (c.lengths[size_t(sequence)] - queries + query) / c.selBlock + 1 : 0;
  }

  // Of each segment its first blocks, -1 behind them, and nothing behind the last segment.
  void expectKept(const std::vector<std::vector<float>> &drawn, GuardedTensor &keptScores, const int32_t *keptBlocks) {
    for (int64_t row = 0; row < rows(); ++row)
      for (int64_t head = 0; head < kKvHeads; ++head)
        for (int64_t place = 0; place < kept; ++place) {
          const int64_t line = row * kKvHeads + head, first = place / c.slots() * c.segment, slot = place % c.slots();
          const int64_t past = std::min<int64_t>(first + c.segment, pastOf(row));
          const int32_t block = keptBlocks[line * kept + place];
          SCOPED_TRACE(testing::Message() << "row " << row << " head " << head << " kept " << place);
          if (first >= past) {
            ASSERT_EQ(block, kUntouched);
            continue;
          }
          const std::vector<Scored> expected = sorted(drawn[size_t(line)], first, past);
          const bool exists = slot < past - first;
          ASSERT_EQ(block, exists ? expected[size_t(slot)].block : -1);
          ASSERT_EQ(keptScores.at(0, row, head, place), exists ? expected[size_t(slot)].score : -kInfinity);
        }
  }

  const Case c;
  const int64_t blocks, kept; // in a row
  TemplateKernel choose;
  std::unique_ptr<TemplateKernel> rank;
};

class CpuRank : public testing::TestWithParam<std::tuple<std::string, Case>> {
protected:
  Selection selection() const { return {std::get<1>(GetParam()), std::get<0>(GetParam())}; }
};

TEST_P(CpuRank, DrawnScores) {
  std::mt19937_64 random(freshSeed());
  std::uniform_real_distribution<float> score(0, 1);
  selection().expectTheFirst([&](int64_t, int64_t, int64_t) { return score(random); });
}

// Few values, so that most blocks are one of many equals; what is no number is -1 there, and forced blocks infinite.
TEST_P(CpuRank, TiesWithinSegmentsAndAcross) {
  std::mt19937_64 random(freshSeed());
  const float values[] = {0, 0.5f, 0.5f, 0, -1, kInfinity, -0.0f, 1};
  selection().expectTheFirst([&](int64_t, int64_t, int64_t) { return values[random() % std::size(values)]; });
}

TEST_P(CpuRank, AllEqual) {
  for (const float value : {0.0f, -1.0f, kInfinity})
    selection().expectTheFirst([&](int64_t, int64_t, int64_t) { return value; });
}

// The first ones all in one segment: it must keep as many as the list takes.
TEST_P(CpuRank, RisingAndFalling) {
  selection().expectTheFirst([](int64_t, int64_t, int64_t block) { return float(block); });
  selection().expectTheFirst([](int64_t, int64_t, int64_t block) { return 1 / float(1 + block); });
}

// Without segments `rank` has nothing to do, and a division by the segment would have no value.
TEST(RankTemplate, RankNeedsSegments) {
  TileFiles tiles;
  const auto programs = tiles.readTemplates();
  ASSERT_TRUE(programs) << programs.status().toString();
  const auto program = std::ranges::find_if(
      *programs, [](const TileFiles::Program &entry) { return entry.file->path == "tile/rank.tile"; });
  ASSERT_NE(program, programs->end());
  const auto header = readTileHeader(*program->tree);
  const auto target = Target::find("cpu");
  ASSERT_TRUE(header && target);
  const auto candidates = [&](Operator op, int64_t segment) {
    Values values = (*target)->values(operatorName(op), DType::kF32, 8);
    values.set("dtype", std::string("fp32"));
    values.set("sel_block", 64);
    values.set("sel_count", 16);
    values.set("many_queries", 0);
    values.set("segment", segment);
    return enumerateCandidates(*header, values, {}, (*target)->limits());
  };
  EXPECT_TRUE(candidates(Operator::kChoose, 0));
  EXPECT_TRUE(candidates(Operator::kRank, 128));
  const auto none = candidates(Operator::kRank, 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(
      none.status().toString(),
      "unsupported: config = segment=0 ranks=1 block_tile=16 column_tile=32 slots=16: no config of template rank is "
      "admissible; the last fell to tile/rank.tile:30: require segment == 0 ? !ranks : (segment % block_tile == 0 && "
      "segment % column_tile == 0 && segment >= slots) (hint: another template has to serve this problem)");
}

const Case kCases[] = {
    {4, 5, 0, 16, {1, 4, 63, 64, 65, 131}},          // one segment, some with fewer blocks than the list
    {1, 64, 0, 32, {1, 16, 17, 63, 64, 65, 200}, 3}, // a list longer than a tile of rows
    {8, 32, 32, 16, {1, 128, 129, 300, 1000}},       // segments no longer than what is kept of them
    {4, 5, 32, 16, {1, 127, 128, 129, 600}, 8},      // a last segment with one block
    {4, 65, 0, 64, {1, 256, 260, 264, 900}, 2},
    {1, 97, 128, 32, {1, 96, 97, 128, 129, 500}, 2},
    {1, 128, 128, 16, {1, 127, 128, 129, 700}}, // segments no longer than the longest list
    {2, 128, 0, 32, {1, 255, 256, 257, 640}, 3},
    {2, 40, 64, 32, {2, 65, 128, 130, 700}, 2}, // what is kept of a segment is in another tile than its blocks
    {1, 17, 128, 64, {1, 127, 128, 129, 1100}}, // several tiles of a segment, a short last one
    {16, 3, 64, 64, {1025, 15, 4096}, 1, 9000}, // a plan made for more
};

std::vector<std::tuple<std::string, Case>> allCases() {
  std::vector<std::tuple<std::string, Case>> all;
  for (const std::string &features : runnableFeatures())
    for (const Case &c : kCases)
      all.emplace_back(features, c);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, CpuRank, testing::ValuesIn(allCases()));

} // namespace
} // namespace nsa::test
