// The pieces into which library pieces_bwd cuts the inverse of lists of blocks, in the interpreter.
#include "tests/harness/scratch.h"
#include "tests/unit/tile_interpreter/tile_programs.h"

namespace nsa::test::tile {
namespace {

// A sequence whose lists hold all blocks that a query sees. Selection blocks have one token, and query i sees i + 1
// of them. An item of queries has four entries.
constexpr int64_t kTokens = 10, kItem = 4;

using Entries = std::vector<std::pair<int64_t, int64_t>>;

// What `function`, a call of the library for each `base + number`, gives for `count` numbers from `first` on: its field
// `first`, and its field `second`.
Entries entriesOf(const std::string &function, const std::string &second, int64_t first, int64_t count, TileCall call) {
  const std::string text = "kernel pieces\nimport sequence, pieces_bwd\nfixed packed, cmp_block, cmp_stride\n"
                           "fixed sel_block, sel_count\ngrid number = count, kv_head = 1, batch = 1\nthreads 32\n"
                           "tensor block_index[entry, kv_head, place]: i32, found[number, side]: i32\n"
                           "tensor index_ranges[side, sequence, kv_head, block]: i32\nscalar count, base: i32\n"
                           "let own = " +
                           function + "\nstore found[number, 0] = own.first\nstore found[number, 1] = own." + second +
                           "\n";
  call.tensors["sequences"] = tensorOf({1, 8}, std::vector<double>(8, 0), Element::kI32); // packed batches read it
  call.tensors["found"] = tensorOf({count, 2}, std::vector<double>(static_cast<size_t>(count) * 2, -1), Element::kI32);
  call.scalars.insert({{"count", static_cast<double>(count)},
                       {"base", static_cast<double>(first)},
                       {"seqlen_q", kTokens},
                       {"seqlen_k", kTokens},
                       {"query_begin", 0},
                       {"query_end", kTokens},
                       {"query_step", 1}});
  call.values = {{"packed", "0"}, {"cmp_block", "1"}, {"cmp_stride", "1"}, {"sel_block", "1"}, {"sel_count", "16"}};
  const auto library = [](const char *name) { return readFile(NSA_TEMPLATES "/tile/library/" + std::string(name)); };
  const TileFindings findings =
      interpret(text, call, {{"sequence", library("sequence.tile")}, {"pieces_bwd", library("pieces_bwd.tile")}});
  EXPECT_TRUE(findings.faults.empty()) << findings.faults[0].message;
  const std::vector<double> found = valuesOf(call.tensors.at("found"));
  Entries entries;
  for (size_t i = 0; i < found.size(); i += 2)
    entries.emplace_back(found[i], found[i + 1]);
  return entries;
}

Entries piecesFrom(int64_t first, int64_t count) {
  TileCall call;
  std::vector<double> index;
  for (int64_t block = 0, offset = 0; block <= kTokens; offset += kTokens - block++)
    index.push_back(static_cast<double>(offset));
  for (int64_t block = 0; block < kTokens; ++block)
    for (int64_t query = block; query < kTokens; ++query)
      index.push_back(static_cast<double>(query));
  const auto places = static_cast<int64_t>(index.size());
  call.tensors["block_index"] = tensorOf({1, 1, places}, index, Element::kI32);
  call.tensors["index_ranges"] = tensorOf({2, 1, 1, 1}, {0, 0}, Element::kI32);
  call.scalars = {{"item_queries", kItem}};
  return entriesOf("piece_at(block_index, sequence(batch), batch, base + number)", "past", first, count, call);
}

// The items of one block whose entries are [listed, past): the first entry and the number of entries.
Entries itemsOf(double listed, double past, double itemQueries, int64_t count) {
  TileCall call;
  call.tensors["block_index"] = tensorOf({1, 1, 1}, {0}, Element::kI32);
  call.tensors["index_ranges"] = tensorOf({2, 1, 1, 1}, {listed, past}, Element::kI32);
  call.scalars = {{"item_queries", itemQueries}};
  return entriesOf("item_at(index_ranges, batch, 0, base + number)", "count", 0, count, call);
}

// Each entry of the lists is in one piece, and in the order of the pieces.
TEST(Pieces, HaveEachEntryOnce) {
  constexpr int64_t kEntries = kTokens * (kTokens + 1) / 2;
  int64_t next = 0;
  for (const auto &[first, past] : piecesFrom(0, kTokens + kEntries / kItem + 1)) {
    if (first >= past)
      continue;
    EXPECT_EQ(first, next);
    EXPECT_LE(past, first + kItem);
    EXPECT_EQ(first / kItem, (past - 1) / kItem);
    next = past;
  }
  EXPECT_EQ(next, kEntries);
}

// A long sequence of the batch asks for pieces of a short one that do not exist. The entries in front of piece 2^30 + 9
// would be 2^32, which is 0 in 32 bits.
TEST(Pieces, ThatDoNotExistHaveNoEntries) {
  for (const int64_t first : {int64_t{60}, (int64_t{1} << 29) - 50, (int64_t{1} << 30) - 50, (int64_t{1} << 31) - 100})
    for (const auto &[begin, past] : piecesFrom(first, 100))
      EXPECT_GE(begin, past) << first;
}

TEST(Items, HaveEachEntryOnce) {
  EXPECT_EQ(itemsOf(5, 14, kItem, 4), (Entries{{5, 4}, {9, 4}, {13, 1}, {17, -3}}));
  EXPECT_EQ(itemsOf(5, 5, kItem, 2), (Entries{{5, 0}, {9, -4}}));
}

// The end of an item would lie behind 2^31.
TEST(Items, OfTheLastEntriesOf32BitsAreWhole) {
  constexpr double kLast = 2147483520; // docs/specification.md, limits of size
  EXPECT_EQ(itemsOf(kLast - 100, kLast, 1024, 1), (Entries{{kLast - 100, 100}}));
}

} // namespace
} // namespace nsa::test::tile
