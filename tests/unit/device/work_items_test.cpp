// The order of attention's items on sm_90a: each row is somebody's once, with the keys that it sees, and blocks of a
// cluster take the same tiles of keys in the same order, also where the second one has no rows.
#include "emulator.h"
#include "runtime/base/sequence_fields.h"
#include "sm90/work_items.cuh"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <tuple>
#include <vector>

using namespace nsa;

namespace {

struct Arguments {
  View<int32, 2> sequences = {};
  View<int32, 1> k_offset = {}, status = {};
  int32 seqlen_q = 0, seqlen_k = 0, query_begin = 0, query_end = 1 << 30, query_step = 1, window = 0;
  int32 kv_heads = 0, batch = 0;
};

template <int32 kBlocks, int32 kHeads, bool kIsPacked, bool kIsWindowed, bool kIsCompressed, bool kHasOffset = true>
struct Case {
  static constexpr int32 kRows = 192, kCluster = kBlocks, kGroup = kHeads, kKeyBytes = 1 << 20; // 40 keys share L2
  static constexpr bool kPacked = kIsPacked, kWindowed = kIsWindowed, kCompressed = kIsCompressed;
  static constexpr int32 kKeyStride = kIsCompressed ? 16 : 1, kSight = kIsCompressed ? 1 + 16 - 32 : 1;
  static constexpr int32 kSequenceQBegin = static_cast<int32>(SequenceField::kQBegin);
  static constexpr int32 kSequenceQLength = static_cast<int32>(SequenceField::kQLength);
  static constexpr int32 kSequenceKBegin = static_cast<int32>(SequenceField::kKBegin);
  static constexpr int32 kSequenceKLength = static_cast<int32>(SequenceField::kKLength);
  static constexpr int32 kSequenceCBegin = static_cast<int32>(SequenceField::kCBegin);
  static constexpr int32 kSequenceKEntry = static_cast<int32>(SequenceField::kKEntry);
  static constexpr int32 kSequenceQEntry = static_cast<int32>(SequenceField::kQEntry);
  static constexpr bool kKeyOffset = kHasOffset;
  static constexpr int32 kKOffsetLimit = kMostKOffset, kBadKOffset = 11;
};

constexpr int32 kMalformed = kMostKOffset + 64;

struct Lengths {
  int32 queries, keys;
  int32 first_key = 0; // its position
};

// Returns the items of each block.
template <typename Facts> std::vector<std::vector<WorkItem>> itemsOf(const Arguments &args, int32 blocks) {
  std::vector<std::vector<WorkItem>> items(static_cast<size_t>(blocks));
  emulator::run({.grid = {static_cast<unsigned>(blocks), 1, 1}, .cluster = Facts::kCluster}, [&] {
    WorkOrder<Facts, Arguments> order(args);
    const int32 rank = static_cast<int32>(blockIdx.x) % Facts::kCluster;
    for (WorkItem item = order.next(rank); item.rows != 0; item = order.next(rank))
      if (threadIdx.x == 0 && item.rows > 0)
        items[blockIdx.x].push_back(item);
  });
  return items;
}

template <typename Facts> void checkOrder(const std::vector<Lengths> &lengths, int32 kvHeads, int32 multiprocessors) {
  Arguments args;
  args.window = 50;
  args.kv_heads = kvHeads;
  args.batch = static_cast<int32>(lengths.size());
  std::vector<SequenceRecord> table;
  std::vector<int32> offsets; // of a dense launch
  alignas(8) int32 status[2] = {0, 0};
  int32 time = 0, longest = 0;
  for (const Lengths &each : lengths) {
    SequenceRecord &record = table.emplace_back();
    record[SequenceField::kQBegin] = time;
    record[SequenceField::kQLength] = each.queries;
    record[SequenceField::kKLength] = each.keys;
    record[SequenceField::kKOffset] = each.first_key;
    offsets.push_back(each.first_key);
    time += each.queries;
    longest = std::max(longest, each.queries);
  }
  args.sequences = {table[0].fields.data(), {kSequenceFields, 1}, 0};
  args.k_offset = {offsets.data(), {1}, 0};
  args.status = {status, {1}, 0};
  args.seqlen_q = lengths[0].queries;
  args.seqlen_k = lengths[0].keys;
  // The grid of the template's header.
  const int32 itemRows = Facts::kRows * Facts::kCluster;
  const int32 most = (longest * Facts::kGroup + itemRows - 1) / itemRows * kvHeads * args.batch;
  const int32 blocks = Facts::kCluster * std::min(multiprocessors / Facts::kCluster, most);
  const std::vector<std::vector<WorkItem>> itemsOfBlocks = itemsOf<Facts>(args, blocks);

  const auto keysOf = [&](const WorkItem &item) {
    for (size_t i = 0; Facts::kPacked && i < lengths.size(); ++i)
      if (item.first_time >= table[i][SequenceField::kQBegin] &&
          item.first_time < table[i][SequenceField::kQBegin] + lengths[i].queries)
        return lengths[i].keys;
    return args.seqlen_k;
  };
  std::map<std::tuple<int32, int32, int32>, int> timesDone; // time of all sequences, key/value head, row of the time
  for (size_t leader = 0; leader < itemsOfBlocks.size(); leader += Facts::kCluster) {
    const std::vector<WorkItem> &first = itemsOfBlocks[leader];
    for (int32 rank = 0; rank < Facts::kCluster; ++rank) {
      const std::vector<WorkItem> &items = itemsOfBlocks[leader + static_cast<size_t>(rank)];
      ASSERT_EQ(items.size(), first.size()) << "a block would wait for its neighbour's loads for ever";
      for (size_t i = 0; i < items.size(); ++i) {
        const WorkItem &item = items[i];
        ASSERT_EQ(item.first_key, first[i].first_key);
        ASSERT_EQ(item.past_key, first[i].past_key);
        ASSERT_EQ(item.kv_head, first[i].kv_head);
        ASSERT_EQ(item.first_row, first[i].first_row + rank * Facts::kRows);
        for (int32 row = item.first_row; row < std::min(item.first_row + Facts::kRows, item.rows); ++row) {
          const int32 query = row / Facts::kGroup;
          const int32 entryTime = Facts::kPacked ? 0 : item.q_entry * args.seqlen_q;
          ++timesDone[{entryTime + item.first_time + query, item.kv_head, row % Facts::kGroup}];
          const int32 past = past_visible_key<Facts>(item.earlier + query);
          const int32 keys = past_visible_key<Facts>(keysOf(item) - 1);
          ASSERT_LE(std::min(past, keys), std::max(item.past_key, 0));
          ASSERT_LE(item.past_key, std::max(keys, 0));
          if (Facts::kWindowed)
            ASSERT_GE(std::max(past - args.window, 0), item.first_key);
        }
      }
    }
  }
  // The table holds a malformed sequence as one without queries; a dense launch finds it out and leaves it out.
  const auto malformed = Facts::kPacked ? lengths.end() : std::ranges::find(lengths, kMalformed, &Lengths::first_key);
  const bool isReported = malformed != lengths.end();
  EXPECT_EQ(status[0], isReported ? Facts::kBadKOffset : 0);
  EXPECT_EQ(status[1], isReported ? malformed - lengths.begin() : 0);
  time -= isReported ? malformed->queries : 0;
  EXPECT_EQ(timesDone.size(), static_cast<size_t>(time) * static_cast<size_t>(kvHeads) * Facts::kGroup);
  EXPECT_TRUE(std::ranges::all_of(timesDone, [](const auto &each) { return each.second == 1; }));
}

template <int32 kBlocks, int32 kHeads> void checkOrders() {
  constexpr int32 kKvHeads = 3;
  // An odd number of them, and one cluster alone.
  for (const int32 multiprocessors : {7, 2}) {
    SCOPED_TRACE(multiprocessors);
    const std::vector<Lengths> same(3, {130, 200}), shifted = {{130, 200, -64}, {130, 200, 96}, {130, 200, 1600}},
                                                    malformed = {{130, 200}, {130, 200, kMalformed}, {130, 200, -1600}};
    for (const std::vector<Lengths> &lengths : {same, shifted, malformed}) {
      checkOrder<Case<kBlocks, kHeads, false, false, false>>(lengths, kKvHeads, multiprocessors);
      checkOrder<Case<kBlocks, kHeads, false, true, false>>(lengths, kKvHeads, multiprocessors);
      checkOrder<Case<kBlocks, kHeads, false, false, true>>(lengths, kKvHeads, multiprocessors);
    }
    checkOrder<Case<kBlocks, kHeads, false, false, false, false>>(same, kKvHeads, multiprocessors);
    checkOrder<Case<kBlocks, kHeads, false, true, false, false>>(same, kKvHeads, multiprocessors);
    checkOrder<Case<kBlocks, kHeads, false, false, true, false>>(same, kKvHeads, multiprocessors);
    std::vector<Lengths> uneven = {{1, 1}, {0, 0}, {0, 70}, {257, 300}, {64, 64}, {7, 900}};
    for (int32 i = 0; i < 40; ++i) // more sequences than a warp has lanes
      uneven.push_back({i % 5, i, 3 * (i % 9) - 11});
    for (Lengths &each : uneven)
      each.queries = std::min(each.queries, each.keys);
    checkOrder<Case<kBlocks, kHeads, true, false, false>>(uneven, kKvHeads, multiprocessors);
    checkOrder<Case<kBlocks, kHeads, true, true, false>>(uneven, kKvHeads, multiprocessors);
    for (Lengths &each : uneven)
      each.first_key = 0;
    checkOrder<Case<kBlocks, kHeads, true, false, false, false>>(uneven, kKvHeads, multiprocessors);
    checkOrder<Case<kBlocks, kHeads, true, true, false, false>>(uneven, kKvHeads, multiprocessors);
  }
}

// The tiles of rows that launches over [borders[i], borders[i + 1]) of a packed batch compute: where each begins and
// ends, and the keys of its cluster.
template <typename Facts> auto tilesOf(std::vector<SequenceRecord> &table, const std::vector<int32> &borders) {
  Arguments args;
  args.query_step = 384; // kGpuChunkStep
  args.window = 50;
  args.kv_heads = 2;
  args.batch = static_cast<int32>(table.size());
  args.sequences = {table[0].fields.data(), {kSequenceFields, 1}, 0};
  std::multiset<std::array<int32, 5>> tiles;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    args.query_begin = borders[i];
    args.query_end = borders[i + 1];
    for (const std::vector<WorkItem> &items : itemsOf<Facts>(args, 2 * Facts::kCluster))
      for (const WorkItem &item : items)
        if (item.first_row < item.rows)
          tiles.insert({item.kv_head, item.first_time * Facts::kGroup + item.first_row,
                        std::min(item.first_row + Facts::kRows, item.rows) + item.first_time * Facts::kGroup,
                        item.first_key, item.past_key});
  }
  return tiles;
}

// Chunks of a packed batch end anywhere in its sequences.
template <int32 kBlocks, int32 kHeads> void checkChunks() {
  std::vector<SequenceRecord> table;
  int32 time = 0;
  for (const int32 queries : {401, 1000, 0, 130, 800}) {
    SequenceRecord &record = table.emplace_back();
    record[SequenceField::kQBegin] = time;
    record[SequenceField::kQLength] = queries;
    record[SequenceField::kKLength] = queries + 70;
    time += queries;
  }
  using Facts = Case<kBlocks, kHeads, true, true, false, false>;
  const auto whole = tilesOf<Facts>(table, {0, time});
  EXPECT_EQ(tilesOf<Facts>(table, {0, 448, 897, 1345, time}), whole);
  EXPECT_EQ(tilesOf<Facts>(table, {0, 1, 400, 401, 402, 1402, 1403, time - 1, time}), whole);
}

TEST(WorkItems, OfChunksAreThoseOfTheWhole) {
  checkChunks<1, 1>();
  checkChunks<1, 16>();
  checkChunks<2, 1>();
  checkChunks<2, 16>();
}

TEST(WorkItems, AreEachRowOnceForBlocks) { checkOrders<1, 16>(); }

TEST(WorkItems, AreEachRowOnceForClustersOfTwo) {
  checkOrders<2, 1>();
  checkOrders<2, 16>();
}

} // namespace
