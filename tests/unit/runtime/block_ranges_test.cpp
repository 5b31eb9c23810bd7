// Block lists to token ranges and back: the tokens that each says, by a mask; every layout; every refusal.
#include "runtime/include/nsa/nsa.hpp"
#include "tests/harness/seed.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace {

// An int32 tensor with its memory; unused elements between its own hold kGap.
constexpr int32_t kGap = 0x77777777;

struct Integers {
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
  std::vector<int32_t> memory;

  // `reversed` lays the first dimension innermost.
  explicit Integers(std::vector<int64_t> shape, bool reversed = false) {
    tensor.dtype = NSA_INT32;
    tensor.rank = static_cast<int32_t>(shape.size());
    int64_t stride = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t axis = reversed ? i : shape.size() - 1 - i;
      tensor.shape[axis] = shape[axis];
      tensor.strides[axis] = stride;
      stride = stride * shape[axis] + (reversed ? 1 : 0);
    }
    memory.assign(static_cast<size_t>(stride) + 1, kGap);
    tensor.data = memory.data();
  }
  Integers(const Integers &) = delete;

  int32_t &at(std::initializer_list<int64_t> index) {
    int64_t offset = 0, axis = 0;
    for (int64_t i : index)
      offset += i * tensor.strides[axis++];
    return memory[static_cast<size_t>(offset)];
  }
};

nsa_range_options optionsFor(int32_t selBlock) {
  nsa_range_options options = NSA_INIT(nsa_range_options);
  options.sel_block = selBlock;
  return options;
}

std::vector<int32_t> drawList(std::mt19937_64 &random, int64_t slots, int64_t blocks) {
  std::set<int32_t> drawn;
  const auto wanted = random() % static_cast<uint64_t>(slots + 1);
  for (uint64_t i = 0; i < wanted; ++i)
    drawn.insert(static_cast<int32_t>(random() % static_cast<uint64_t>(blocks)));
  std::vector<int32_t> list(drawn.begin(), drawn.end());
  list.resize(static_cast<size_t>(slots), -1);
  return list;
}

// Tokens up to `position` in listed blocks.
std::set<int64_t> tokensOf(const std::vector<int32_t> &list, int64_t selBlock, int64_t position) {
  std::set<int64_t> tokens;
  for (int64_t t = 0; t <= position; ++t)
    for (int32_t block : list)
      if (block >= 0 && t / selBlock == block)
        tokens.insert(t);
  return tokens;
}

// One query's ranges must say the list's tokens, and the list back must have the blocks that the query may see.
void checkQuery(const std::vector<int32_t> &list, std::vector<std::pair<int32_t, int32_t>> ranges, bool merged,
                int64_t selBlock, int64_t position, const std::vector<int32_t> &back) {
  std::set<int64_t> tokens;
  int32_t end = -1;
  while (!ranges.empty() && ranges.back() == std::pair(0, 0))
    ranges.pop_back();
  for (const auto &[first, past] : ranges) {
    EXPECT_LT(first, past);
    EXPECT_TRUE(merged ? first > end : first >= end) << "ascending, and apart where merged";
    end = past;
    for (int32_t t = first; t < past; ++t)
      tokens.insert(t);
  }
  EXPECT_EQ(tokens, tokensOf(list, selBlock, position));
  std::vector<int32_t> visible;
  for (int32_t block : list)
    if (block >= 0 && block * selBlock <= position)
      visible.push_back(block);
  if (!merged)
    EXPECT_EQ(ranges.size(), visible.size());
  visible.resize(back.size(), -1);
  EXPECT_EQ(back, visible);
}

TEST(BlockRanges, SayTheListsTokensInTheDenseLayout) {
  std::mt19937_64 random(nsa::test::freshSeed());
  constexpr int64_t kBatch = 2, kQueries = 23, kHeads = 3, kSlots = 6;
  for (const int64_t keys : {0, 23, 60})
    for (const int32_t selBlock : {1, 7, 16})
      for (const bool merge : {false, true}) {
        Integers list({kBatch, kQueries, kHeads, kSlots}, true), ranges({kBatch, kQueries, kHeads, 8, 2}),
            back({kBatch, kQueries, kHeads, 9}, true);
        std::vector<std::vector<int32_t>> drawn;
        for (int64_t b = 0; b < kBatch; ++b)
          for (int64_t t = 0; t < kQueries; ++t)
            for (int64_t g = 0; g < kHeads; ++g) {
              drawn.push_back(drawList(random, kSlots, 70 / selBlock + 1));
              for (int64_t i = 0; i < kSlots; ++i)
                list.at({b, t, g, i}) = drawn.back()[static_cast<size_t>(i)];
            }
        nsa_range_options options = optionsFor(selBlock);
        options.merge = merge;
        options.seqlen_k = keys;
        nsa_error error;
        ASSERT_EQ(nsa_ranges_from_block_list(&list.tensor, &options, &ranges.tensor, &error), NSA_OK) << error.message;
        ASSERT_EQ(nsa_block_list_from_ranges(&ranges.tensor, &options, &back.tensor, &error), NSA_OK) << error.message;
        size_t next = 0;
        for (int64_t b = 0; b < kBatch; ++b)
          for (int64_t t = 0; t < kQueries; ++t)
            for (int64_t g = 0; g < kHeads; ++g) {
              std::vector<std::pair<int32_t, int32_t>> found;
              for (int64_t i = 0; i < 8; ++i)
                found.emplace_back(ranges.at({b, t, g, i, 0}), ranges.at({b, t, g, i, 1}));
              std::vector<int32_t> returned;
              for (int64_t i = 0; i < 9; ++i)
                returned.push_back(back.at({b, t, g, i}));
              checkQuery(drawn[next++], found, merge, selBlock, (keys ? keys : kQueries) - kQueries + t, returned);
            }
      }
}

TEST(BlockRanges, SayTheListsTokensInThePackedLayout) {
  std::mt19937_64 random(nsa::test::freshSeed());
  const std::vector<int32_t> q = {0, 9, 9, 12}, k = {0, 30, 34, 37}; // prefixes; a sequence without queries
  Integers cuQ({4}, true), cuK({4}), list({13, 2, 5}), ranges({13, 2, 5, 2}, true), back({13, 2, 5});
  for (int64_t i = 0; i < 4; ++i) {
    cuQ.at({i}) = q[static_cast<size_t>(i)];
    cuK.at({i}) = k[static_cast<size_t>(i)];
  }
  std::vector<std::vector<int32_t>> drawn;
  for (int64_t t = 0; t < 12; ++t)
    for (int64_t g = 0; g < 2; ++g) {
      drawn.push_back(drawList(random, 5, 9));
      for (int64_t i = 0; i < 5; ++i)
        list.at({t, g, i}) = drawn.back()[static_cast<size_t>(i)];
    }
  nsa_range_options options = optionsFor(4);
  options.cu_seqlens_q = &cuQ.tensor;
  options.cu_seqlens_k = &cuK.tensor;
  nsa_error error;
  ASSERT_EQ(nsa_ranges_from_block_list(&list.tensor, &options, &ranges.tensor, &error), NSA_OK) << error.message;
  ASSERT_EQ(nsa_block_list_from_ranges(&ranges.tensor, &options, &back.tensor, &error), NSA_OK) << error.message;
  const int64_t positions[] = {21, 22, 23, 24, 25, 26, 27, 28, 29, 0, 1, 2};
  for (int64_t t = 0; t < 12; ++t)
    for (int64_t g = 0; g < 2; ++g) {
      std::vector<std::pair<int32_t, int32_t>> found;
      std::vector<int32_t> returned;
      for (int64_t i = 0; i < 5; ++i) {
        found.emplace_back(ranges.at({t, g, i, 0}), ranges.at({t, g, i, 1}));
        returned.push_back(back.at({t, g, i}));
      }
      checkQuery(drawn[static_cast<size_t>(2 * t + g)], found, false, 4, positions[t], returned);
    }
  EXPECT_EQ(ranges.at({12, 1, 4, 1}), kGap) << "a row behind the last sequence is no query";
}

// One list of lengths stands for both, whichever it is.
TEST(BlockRanges, OneListOfLengthsIsEnough) {
  for (const bool isQ : {false, true}) {
    Integers lengths({2}), list({3, 1, 1}), ranges({3, 1, 1, 2});
    lengths.at({0}) = 0;
    lengths.at({1}) = 3;
    for (int64_t t = 0; t < 3; ++t)
      list.at({t, 0, 0}) = 0;
    nsa_range_options options = optionsFor(16);
    (isQ ? options.cu_seqlens_q : options.cu_seqlens_k) = &lengths.tensor;
    nsa_error error;
    ASSERT_EQ(nsa_ranges_from_block_list(&list.tensor, &options, &ranges.tensor, &error), NSA_OK) << error.message;
    for (int64_t t = 0; t < 3; ++t)
      EXPECT_EQ(ranges.at({t, 0, 0, 1}), t + 1) << "cut behind the own token";
  }
}

TEST(BlockRanges, OneKvHeadMayBeLeftOut) {
  Integers list({1, 40, 1, 3}), ranges({1, 40, 3, 2}), back({1, 40, 1, 3});
  for (int64_t t = 0; t < 40; ++t)
    for (int64_t i = 0; i < 3; ++i)
      list.at({0, t, 0, i}) = i <= t / 16 ? static_cast<int32_t>(i) : -1;
  nsa::Tensor listTensor(list.memory.data(), {1, 40, 1, 3}), rangeTensor(ranges.memory.data(), {1, 40, 3, 2}),
      backTensor(back.memory.data(), {1, 40, 1, 3});
  nsa::RangeOptions options;
  options.selBlock = 16;
  options.merge = true;
  nsa::rangesFromBlockList(listTensor, rangeTensor, options);
  EXPECT_EQ(ranges.at({0, 39, 0, 0}), 0);
  EXPECT_EQ(ranges.at({0, 39, 0, 1}), 40) << "three blocks in one range, cut behind the query";
  EXPECT_EQ(ranges.at({0, 39, 1, 1}), 0);
  nsa::blockListFromRanges(rangeTensor, backTensor, options);
  for (int64_t t = 0; t < 40; ++t)
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(back.at({0, t, 0, i}), list.at({0, t, 0, i})) << t;
}

TEST(BlockRanges, RangesMayStandInAnyOrderAndOverlap) {
  Integers ranges({1, 1, 1, 4, 2}), list({1, 1, 1, 4});
  const int32_t given[] = {48, 60, 0, 0, 16, 48, 16, 32}; // of a query at 59
  std::copy(std::begin(given), std::end(given), ranges.memory.begin());
  nsa_range_options options = optionsFor(16);
  options.seqlen_k = 60;
  nsa_error error;
  ASSERT_EQ(nsa_block_list_from_ranges(&ranges.tensor, &options, &list.tensor, &error), NSA_OK) << error.message;
  EXPECT_EQ(std::vector<int32_t>(list.memory.begin(), list.memory.begin() + 4), (std::vector<int32_t>{1, 2, 3, -1}));
}

TEST(BlockRanges, TheLastTokenOfTheLongestSequenceIsInItsRange) {
  Integers list({1, 1, 1, 1}), ranges({1, 1, 1, 1, 2}), back({1, 1, 1, 1});
  list.at({0, 0, 0, 0}) = INT32_MAX / 64;
  nsa_range_options options = optionsFor(64);
  options.seqlen_k = INT32_MAX;
  nsa_error error;
  ASSERT_EQ(nsa_ranges_from_block_list(&list.tensor, &options, &ranges.tensor, &error), NSA_OK) << error.message;
  EXPECT_EQ(ranges.at({0, 0, 0, 0, 0}), INT32_MAX / 64 * 64);
  EXPECT_EQ(ranges.at({0, 0, 0, 0, 1}), INT32_MAX);
  ASSERT_EQ(nsa_block_list_from_ranges(&ranges.tensor, &options, &back.tensor, &error), NSA_OK) << error.message;
  EXPECT_EQ(back.at({0, 0, 0, 0}), INT32_MAX / 64);
}

TEST(BlockRanges, NothingIsConvertedToNothing) {
  Integers list({2, 0, 3, 4}), ranges({2, 0, 3, 4, 2});
  list.tensor.data = ranges.tensor.data = nullptr;
  nsa_range_options options = optionsFor(16);
  EXPECT_EQ(nsa_ranges_from_block_list(&list.tensor, &options, &ranges.tensor, nullptr), NSA_OK);
  EXPECT_EQ(nsa_block_list_from_ranges(&ranges.tensor, &options, &list.tensor, nullptr), NSA_OK);
}

// Nothing counts the sequences of an empty list, nor keeps anything of them.
TEST(BlockRanges, AnEmptyListOfManySequencesIsNothing) {
  constexpr int64_t kMany = int64_t{1} << 40;
  for (const int emptyAxis : {1, 2, 3}) {
    Integers list({0, 3, 2, 4}), ranges({0, 3, 2, 4, 2});
    for (nsa_tensor *tensor : {&list.tensor, &ranges.tensor}) {
      tensor->data = nullptr;
      tensor->shape[0] = kMany;
      tensor->shape[emptyAxis] = 0;
    }
    nsa_range_options options = optionsFor(16);
    EXPECT_EQ(nsa_ranges_from_block_list(&list.tensor, &options, &ranges.tensor, nullptr), NSA_OK) << emptyAxis;
    EXPECT_EQ(nsa_block_list_from_ranges(&ranges.tensor, &options, &list.tensor, nullptr), NSA_OK) << emptyAxis;
  }
}

// A good conversion of which a test spoils exactly one piece.
struct Good {
  Integers list{{1, 20, 1, 2}}, ranges{{1, 20, 1, 2, 2}};
  Integers cuQ{{2}}, cuK{{2}};
  nsa_range_options options = optionsFor(8);

  Good() {
    for (int64_t t = 0; t < 20; ++t) {
      list.at({0, t, 0, 0}) = 0;
      list.at({0, t, 0, 1}) = -1;
      for (int64_t i = 0; i < 4; ++i)
        ranges.at({0, t, 0, i / 2, i % 2}) = i == 1 ? static_cast<int32_t>(std::min<int64_t>(8, t + 1)) : 0;
    }
    cuQ.at({0}) = cuK.at({0}) = 0;
    cuQ.at({1}) = cuK.at({1}) = 20;
  }
  void pack() {
    list.tensor.rank = 3;
    ranges.tensor.rank = 4;
    for (nsa_tensor *tensor : {&list.tensor, &ranges.tensor})
      for (int axis = 0; axis < 4; ++axis) {
        tensor->shape[axis] = tensor->shape[axis + 1];
        tensor->strides[axis] = tensor->strides[axis + 1];
      }
    options.cu_seqlens_q = &cuQ.tensor;
    options.cu_seqlens_k = &cuK.tensor;
  }
};

TEST(BlockRanges, TheSpoiltCallIsGoodAtFirst) {
  for (const bool packed : {false, true}) {
    Good good;
    if (packed)
      good.pack();
    nsa_error error;
    EXPECT_EQ(nsa_ranges_from_block_list(&good.list.tensor, &good.options, &good.ranges.tensor, &error), NSA_OK)
        << error.message;
    EXPECT_EQ(nsa_block_list_from_ranges(&good.ranges.tensor, &good.options, &good.list.tensor, &error), NSA_OK)
        << error.message;
  }
}

struct Wrong {
  const char *field, *rule;
  void (*spoil)(Good &);
};

void expectRefused(const Wrong &wrong, bool fromRanges) {
  Good good;
  wrong.spoil(good);
  nsa_error error;
  const nsa_status status =
      fromRanges ? nsa_block_list_from_ranges(&good.ranges.tensor, &good.options, &good.list.tensor, &error)
                 : nsa_ranges_from_block_list(&good.list.tensor, &good.options, &good.ranges.tensor, &error);
  EXPECT_EQ(status, NSA_INVALID_ARGUMENT) << wrong.field << ": " << wrong.rule;
  EXPECT_STREQ(error.field, wrong.field) << error.message;
  EXPECT_NE(std::string(error.rule).find(wrong.rule), std::string::npos) << error.message;
}

TEST(BlockRanges, BadArgumentsAreNamedBothWays) {
  const Wrong rows[] = {
      {"options.size", "must be", [](Good &g) { g.options.size = 8; }},
      {"options.reserved", "must be 0", [](Good &g) { g.options.reserved[1] = 1; }},
      {"options.sel_block", "at least 1", [](Good &g) { g.options.sel_block = 0; }},
      {"options.merge", "must be 0 or 1", [](Good &g) { g.options.merge = 2; }},
      {"options.seqlen_k", "at least the 20 queries", [](Good &g) { g.options.seqlen_k = 19; }},
      {"options.seqlen_k", "below 2^31", [](Good &g) { g.options.seqlen_k = 4'000'000'000; }},
      {"options.seqlen_k", "below 2^31", [](Good &g) { g.options.seqlen_k = int64_t{1} << 31; }},
      {"block_list.shape[1]", "below 2^31",
       [](Good &g) { g.list.tensor.shape[1] = g.ranges.tensor.shape[1] = int64_t{1} << 31; }},
      {"block_list.size", "must be", [](Good &g) { g.list.tensor.size = 0; }},
      {"block_list.dtype", "NSA_INT32", [](Good &g) { g.list.tensor.dtype = NSA_FP32; }},
      {"block_list.rank", "from 1 to 5", [](Good &g) { g.list.tensor.rank = 6; }},
      {"block_list.accumulate", "must be 0", [](Good &g) { g.list.tensor.accumulate = 1; }},
      {"block_list.rank", "must be 4", [](Good &g) { g.list.tensor.rank = 3; }},
      {"block_list.shape[1]", "negative", [](Good &g) { g.list.tensor.shape[1] = -1; }},
      {"block_list.data", "null", [](Good &g) { g.list.tensor.data = nullptr; }},
      {"ranges.dtype", "NSA_INT32", [](Good &g) { g.ranges.tensor.dtype = NSA_BF16; }},
      {"ranges.rank", "must be 5 or 4", [](Good &g) { g.ranges.tensor.rank = 3; }},
      {"ranges.rank", "must be 5:",
       [](Good &g) { g.list.tensor.shape[2] = 2, g.ranges.tensor.rank = 4; }}, // two heads cannot be left out
      {"ranges.shape[1]", "must be 20", [](Good &g) { g.ranges.tensor.shape[1] = 21; }},
      {"ranges.shape[4]", "must be 2", [](Good &g) { g.ranges.tensor.shape[4] = 3; }},
      {"ranges.data", "null", [](Good &g) { g.ranges.tensor.data = nullptr; }},
      {"block_list.rank", "must be 3", [](Good &g) { g.pack(), g.list.tensor.rank = 4; }},
      {"ranges.rank", "must be 4:", [](Good &g) { g.pack(), g.ranges.tensor.rank = 3; }},
      {"options.seqlen_k", "beside cu_seqlens", [](Good &g) { g.pack(), g.options.seqlen_k = 20; }},
      {"cu_seqlens_q.dtype", "NSA_INT32", [](Good &g) { g.pack(), g.cuQ.tensor.dtype = NSA_FP32; }},
      {"cu_seqlens_k.shape", "one dimension", [](Good &g) { g.pack(), g.cuK.tensor.rank = 2; }},
      {"cu_seqlens_q[0]", "must be 0", [](Good &g) { g.pack(), g.cuQ.at({0}) = 1; }},
      {"cu_seqlens_q[1]", "rows of block_list", [](Good &g) { g.pack(), g.cuQ.at({1}) = 21; }},
      {"cu_seqlens_k[1]", "less than the one before", [](Good &g) { g.pack(), g.cuK.at({1}) = -3; }},
      {"cu_seqlens_k.shape", "must be 2", [](Good &g) { g.pack(), g.cuK.tensor.shape[0] = 1; }},
      {"seqlen_q of sequence 0", "at most its seqlen_k = 19", [](Good &g) { g.pack(), g.cuK.at({1}) = 19; }},
  };
  for (const Wrong &row : rows)
    for (const bool fromRanges : {false, true})
      expectRefused(row, fromRanges);
  Good good;
  nsa_error error;
  EXPECT_EQ(nsa_ranges_from_block_list(nullptr, &good.options, &good.ranges.tensor, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "block_list");
  EXPECT_EQ(nsa_block_list_from_ranges(nullptr, &good.options, &good.list.tensor, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "ranges");
  EXPECT_EQ(nsa_block_list_from_ranges(&good.ranges.tensor, nullptr, &good.list.tensor, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "options");
}

TEST(BlockRanges, MalformedListsAreNamedWithTheirPlace) {
  const Wrong rows[] = {
      {"block_list[0, 3, 0, 1]", "-1 behind the last one", [](Good &g) { g.list.at({0, 3, 0, 1}) = -2; }},
      {"block_list[0, 3, 0, 1]", "must be -1",
       [](Good &g) { g.list.at({0, 3, 0, 0}) = -1, g.list.at({0, 3, 0, 1}) = 1; }},
      {"block_list[0, 3, 0, 1]", "above the block before it, 0", [](Good &g) { g.list.at({0, 3, 0, 1}) = 0; }},
      {"block_list[3, 0, 1]", "above the block before it, 0", [](Good &g) { g.list.at({0, 3, 0, 1}) = 0, g.pack(); }},
      {"ranges.shape", "must hold the 2 ranges of block_list[0, 8, 0, 0]",
       [](Good &g) {
         g.ranges.tensor.shape[3] = 1;
         for (int64_t t = 0; t < 20; ++t)
           g.list.at({0, t, 0, 1}) = 1;
       }},
  };
  for (const Wrong &row : rows)
    expectRefused(row, false);
}

TEST(BlockRanges, MalformedRangesAreNamedWithTheirPlace) {
  const Wrong rows[] = {
      {"ranges[0, 12, 0, 1]", "from 0 up", [](Good &g) { g.ranges.at({0, 12, 0, 1, 0}) = -8; }},
      {"ranges[0, 12, 0, 1]", "end behind it", [](Good &g) { g.ranges.at({0, 12, 0, 1, 0}) = 8; }},
      {"ranges[0, 12, 0, 1]", "the query's own token, 12",
       [](Good &g) { g.ranges.at({0, 12, 0, 1, 0}) = 8, g.ranges.at({0, 12, 0, 1, 1}) = 16; }},
      {"ranges[0, 12, 0, 1]", "whole blocks of 8",
       [](Good &g) { g.ranges.at({0, 12, 0, 1, 0}) = 9, g.ranges.at({0, 12, 0, 1, 1}) = 13; }},
      {"ranges[0, 12, 0, 0]", "whole blocks of 8", [](Good &g) { g.ranges.at({0, 12, 0, 0, 1}) = 7; }},
      {"block_list.shape", "must hold the 2 blocks of ranges[0, 19, 0, 0]",
       [](Good &g) { g.list.tensor.shape[3] = 1, g.ranges.at({0, 19, 0, 0, 1}) = 16; }},
      {"block_list.shape", "must hold the 2 blocks of ranges[0, 19, 0, 0]",
       [](Good &g) {
         g.list.tensor.shape[3] = 1;
         g.ranges.at({0, 19, 0, 1, 0}) = 8, g.ranges.at({0, 19, 0, 1, 1}) = 16;
       }},
  };
  for (const Wrong &row : rows)
    expectRefused(row, true);
}

} // namespace
