// The template cache_sequences on the CPU backend alone: the table that it writes, the lengths that it raises, and what
// it says of a step that breaks a rule. What it reads stands between guard pages, so a read past it stops the test.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/cache_rows.h"
#include "tests/unit/cpu/template_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace nsa::test {
namespace {

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

struct Step {
  std::vector<int32_t> offsets; // of packed new tokens; empty: `seqlenQ` of each sequence
  int32_t seqlenQ = 0, totalQ = 0;
  std::vector<int32_t> lengths;
  int32_t capacity = 0;
  std::vector<int32_t> table; // pages, as many of each sequence
  int32_t pages = 0;
  int32_t maxQ = kMost, maxK = kMost;

  size_t batch() const { return lengths.size(); }
};

void PrintTo(const Step &step, std::ostream *out) {
  *out << "offsets " << testing::PrintToString(step.offsets) << " of " << step.totalQ << ", or " << step.seqlenQ
       << "; lengths " << testing::PrintToString(step.lengths) << " of " << step.capacity << "; pages "
       << testing::PrintToString(step.table) << " of " << step.pages << "; maxima " << step.maxQ << "/" << step.maxK;
}

struct Outcome {
  std::vector<CacheRow> attending, compressing;
  std::vector<int32_t> lengths, codes; // codes of each sequence's own program
};

class CacheSequencesKernel {
public:
  CacheSequencesKernel(int32_t block, int32_t stride, int32_t pageSize, const std::string &features)
      : block(block), stride(stride), pageSize(pageSize), kernel("tile/cache_sequences.tile", Operator::kCacheSequences,
                                                                 {{"dtype", "fp32"},
                                                                  {"cmp_block", std::to_string(block)},
                                                                  {"cmp_stride", std::to_string(stride)},
                                                                  {"page_size", std::to_string(pageSize)}},
                                                                 {}, features) {}

  Outcome run(const Step &step, GuardedBuffer::Against against = GuardedBuffer::Against::kEnd) const {
    const size_t batch = step.batch(), pages = step.table.size() / batch;
    GuardedBuffer offsets(4 * (batch + 1), against), lengths(4 * batch, against);
    GuardedBuffer table(4 * step.table.size(), against), rows(2 * batch * sizeof(CacheRow), against);
    std::copy(step.offsets.begin(), step.offsets.end(), offsets.as<int32_t>());
    std::copy(step.lengths.begin(), step.lengths.end(), lengths.as<int32_t>());
    std::copy(step.table.begin(), step.table.end(), table.as<int32_t>());
    Outcome outcome;
    for (size_t sequence = 0; sequence < batch; ++sequence) {
      int32_t status[2] = {0, -1};
      Arguments arguments;
      arguments.view("cu_seqlens_q", step.offsets.empty() ? nullptr : offsets.as<void>(), {1});
      arguments.view("cache_seqlens", lengths.as<void>(), {1});
      arguments.view("block_table", pageSize ? table.as<void>() : nullptr, {int64_t(pages), 1});
      arguments.i32("seqlen_q", step.seqlenQ).i32("total_q", step.totalQ).i32("capacity", step.capacity);
      arguments.i32("pages", step.pages).i32("max_seqlen_q", step.maxQ).i32("max_seqlen_k", step.maxK);
      arguments.i32("batch", int32_t(batch)).view("sequences", rows.as<void>(), {kSequenceFields, 1});
      arguments.view("status", status, {1});
      kernel.program().runOnce(kernel.slots(arguments), against, int32_t(sequence));
      outcome.codes.push_back(status[0]);
      EXPECT_EQ(status[1], status[0] ? int32_t(sequence) : -1);
    }
    outcome.attending.assign(rows.as<CacheRow>(), rows.as<CacheRow>() + batch);
    outcome.compressing.assign(rows.as<CacheRow>() + batch, rows.as<CacheRow>() + 2 * batch);
    outcome.lengths.assign(lengths.as<int32_t>(), lengths.as<int32_t>() + batch);
    return outcome;
  }

  // Of a step whose codes are known: every row, and every length.
  void expect(const Step &step, const std::vector<int32_t> &codes) const {
    SCOPED_TRACE(testing::PrintToString(step));
    for (auto against : {GuardedBuffer::Against::kStart, GuardedBuffer::Against::kEnd}) {
      const Outcome outcome = run(step, against);
      EXPECT_EQ(outcome.codes, codes);
      for (size_t s = 0; s < step.batch(); ++s) {
        SCOPED_TRACE(testing::Message() << "sequence " << s);
        if (codes[s] != 0) {
          EXPECT_EQ(outcome.attending[s], CacheRow{});
          EXPECT_EQ(outcome.compressing[s], CacheRow{});
          EXPECT_EQ(outcome.lengths[s], step.lengths[s]);
          continue;
        }
        const bool isPacked = !step.offsets.empty();
        const int64_t begin = isPacked ? step.offsets[s] : int64_t(s) * step.seqlenQ;
        const int64_t added = isPacked ? step.offsets[s + 1] - begin : step.seqlenQ;
        const CacheGrowth growth = {block, stride, int32_t(s), step.lengths[s], added, begin, isPacked};
        EXPECT_EQ(outcome.attending[s], growth.attending());
        EXPECT_EQ(outcome.compressing[s], growth.compressing());
        EXPECT_EQ(outcome.lengths[s], step.lengths[s] + added);
      }
    }
  }

  const int32_t block, stride, pageSize;

private:
  TemplateKernel kernel;
};

class CpuCacheSequences : public testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
  // Three sequences of up to 60 tokens, 40 to attend, in pages of 8 where there are pages.
  static constexpr int32_t kBlock = 6, kStride = 2, kPage = 8, kCapacity = 64, kPages = 24;

  bool isPaged() const { return std::get<1>(GetParam()); }
  CacheSequencesKernel kernel() const { return {kBlock, kStride, isPaged() ? kPage : 0, std::get<0>(GetParam())}; }

  Step dense(std::vector<int32_t> lengths, int32_t added) const {
    Step step;
    step.lengths = std::move(lengths);
    step.seqlenQ = step.totalQ = added;
    return withRoom(step);
  }
  Step packed(std::vector<int32_t> lengths, std::vector<int32_t> offsets, int32_t total) const {
    Step step;
    step.lengths = std::move(lengths);
    step.offsets = std::move(offsets);
    step.totalQ = total;
    return withRoom(step);
  }

private:
  Step withRoom(Step step) const {
    step.capacity = kCapacity;
    step.maxQ = 20;
    step.maxK = 60;
    if (isPaged()) {
      step.pages = kPages;
      for (int32_t i = 0; i < int32_t(step.batch()) * kCapacity / kPage; ++i)
        step.table.push_back((i * 7) % kPages);
    }
    return step;
  }
};

class CpuCachePages : public CpuCacheSequences {};

TEST_P(CpuCacheSequences, StepsAreTabledAndLengthsGrow) {
  std::mt19937 engine(freshSeed());
  auto below = [&](int64_t past) { return int32_t(engine() % uint64_t(past)); };
  for (const auto &[block, stride, page] : {std::tuple{32, 16, 64}, {4, 4, 4}, {6, 2, 10}, {7, 1, 1}, {1, 1, 3}}) {
    const CacheSequencesKernel kernel(block, stride, isPaged() ? page : 0, std::get<0>(GetParam()));
    for (int32_t batch : {1, 3, 37})
      for (bool isPacked : {false, true}) {
        Step step;
        const int32_t pagesOfSequence = (120 + page - 1) / page;
        step.capacity = isPaged() ? pagesOfSequence * page : 120;
        step.pages = isPaged() ? 1 + below(1000) : 0;
        step.seqlenQ = isPacked ? 0 : below(40);
        if (isPacked)
          step.offsets.push_back(0);
        for (int32_t s = 0; s < batch; ++s) {
          const int32_t added = isPacked ? below(4) ? below(3) : below(40) : step.seqlenQ;
          step.lengths.push_back(below(3) ? below(120 - added + 1) : 0);
          if (isPacked)
            step.offsets.push_back(step.offsets.back() + added);
          // What stands behind the last page is not looked at.
          for (int32_t i = 0; isPaged() && i < pagesOfSequence; ++i) {
            const int32_t length = step.lengths.back();
            const bool isUsed = added > 0 && i * page < length + added;
            const int32_t others[] = {kLeast, -1, step.pages, kMost};
            step.table.push_back(isUsed ? below(step.pages) : others[below(4)]);
          }
        }
        step.totalQ = isPacked ? step.offsets.back() + batch % 2 * 5 : step.seqlenQ; // rows of no sequence
        kernel.expect(step, std::vector<int32_t>(size_t(batch), 0));
      }
  }
}

// 1: offsets of packed new tokens.
TEST_P(CpuCacheSequences, MalformedOffsetsAreReported) {
  const CacheSequencesKernel step = kernel();
  const std::vector<int32_t> lengths = {3, 0, 17};
  const std::pair<std::vector<int32_t>, std::vector<int32_t>> cases[] = {
      {{0, 5, 5, 12}, {0, 0, 0}},         {{0, 0, 0, 0}, {0, 0, 0}},       {{1, 5, 5, 12}, {1, 0, 0}},
      {{-1, 5, 5, 12}, {1, 0, 0}},        {{kLeast, 5, 5, 12}, {1, 0, 0}}, {{0, 5, 4, 12}, {0, 1, 0}},
      {{0, 5, 5, 13}, {0, 0, 1}},         {{0, 5, 5, kMost}, {0, 0, 1}},   {{0, 5, 5, kLeast}, {0, 0, 1}},
      {{0, 5, -2, 12}, {0, 1, 1}},        {{0, 13, 5, 12}, {1, 1, 0}},     {{kMost, kLeast, 5, 12}, {1, 1, 0}},
      {{0, kMost, kMost, 12}, {1, 1, 1}},
  };
  for (const auto &[offsets, codes] : cases)
    step.expect(packed(lengths, offsets, 12), codes);
}

// 8 and 9: lengths that are none, and new tokens without room.
TEST_P(CpuCacheSequences, LengthsOutOfRangeAndAFullCacheAreReported) {
  const CacheSequencesKernel kernel = this->kernel();
  auto unbounded = [](Step step) {
    step.maxK = kMost;
    return step;
  };
  kernel.expect(unbounded(dense({-1, 0, 5}, 4)), {8, 0, 0});
  kernel.expect(unbounded(dense({kLeast, kMost, 65}, 4)), {8, 8, 8});
  kernel.expect(unbounded(dense({60, 61, 64}, 4)), {0, 9, 9});
  kernel.expect(unbounded(dense({64, 63, 0}, 0)), {0, 0, 0});
  kernel.expect(unbounded(packed({64, 64, 55}, {0, 0, 1, 11}, 11)), {0, 9, 9});
  kernel.expect(unbounded(packed({64, -64, 54}, {0, 0, 0, 10}, 11)), {0, 8, 0});
  // Room for as many as 32 bits count.
  Step step = unbounded(dense({kMost, kMost - 3, kMost - 2}, 3));
  step.capacity = kMost;
  step.maxK = kMost - 127;
  if (!isPaged()) // a table has no such row
    kernel.expect(step, {9, 5, 9});
}

// 4 and 5: more than the plan was made for.
TEST_P(CpuCacheSequences, LengthsBeyondTheMaximaAreReported) {
  const CacheSequencesKernel kernel = this->kernel();
  kernel.expect(dense({0, 5, 30}, 20), {0, 0, 0});
  kernel.expect(dense({0, 5, 30}, 21), {4, 4, 4});
  kernel.expect(dense({40, 41, 44}, 20), {0, 5, 5});
  kernel.expect(packed({0, 20, 40}, {0, 20, 41, 61}, 61), {0, 4, 0});
  kernel.expect(packed({59, 60, 60}, {0, 1, 1, 2}, 2), {0, 0, 5});
}

// Code 10: pages that the pools do not have. Pages behind the end, and those of sequences without new tokens, are not
// checked.
TEST_P(CpuCachePages, BadOnesAreReported) {
  const CacheSequencesKernel kernel = this->kernel();
  auto spoiled = [](Step step, size_t sequence, size_t place, int32_t page) {
    step.table[sequence * kCapacity / kPage + place] = page;
    return step;
  };
  for (int32_t bad : {kPages, -1, kLeast, kMost}) {
    const Step step =
        dense({8, 14, 15}, 9); // pages 1 and 2 of each sequence, of the second and third after some tokens
    kernel.expect(spoiled(step, 0, 0, bad), {10, 0, 0});
    kernel.expect(spoiled(step, 0, 1, bad), {10, 0, 0});
    kernel.expect(spoiled(step, 0, 2, bad), {10, 0, 0});
    kernel.expect(spoiled(step, 0, 3, bad), {0, 0, 0});
    kernel.expect(spoiled(step, 1, 0, bad), {0, 10, 0});
    kernel.expect(spoiled(step, 1, 1, bad), {0, 10, 0});
    kernel.expect(spoiled(step, 2, 2, bad), {0, 0, 10});
    kernel.expect(spoiled(step, 2, 3, bad), {0, 0, 0});
    // Without new tokens no page is theirs, wherever the last one lies.
    kernel.expect(spoiled(packed({5, 8, 60}, {0, 0, 0, 0}, 0), 0, 0, bad), {0, 0, 0});
    kernel.expect(spoiled(packed({5, 8, 60}, {0, 0, 0, 0}, 0), 1, 1, bad), {0, 0, 0});
  }
  kernel.expect(spoiled(dense({0, 0, 0}, 1), 2, 0, kPages - 1), {0, 0, 0});
}

// Where several rules are broken the first of them is told, and nothing is computed from what broke one.
TEST_P(CpuCacheSequences, TheFirstBrokenRuleIsTold) {
  const CacheSequencesKernel kernel = this->kernel();
  kernel.expect(packed({-1, 70, kMost}, {2, 1, 40, 12}, 12), {1, 1, 1});
  kernel.expect(packed({-1, 62, 41}, {0, 30, 60, 80}, 80), {8, 4, 5});
  kernel.expect(dense({65, 50, 62}, 30), {8, 4, 4});
  Step step = dense({55, 47, 0}, 15);
  std::fill(step.table.begin(), step.table.end(), -1);
  kernel.expect(step, {9, 5, isPaged() ? 10 : 0});
}

std::string nameOf(const testing::TestParamInfo<CpuCacheSequences::ParamType> &info) {
  std::string name = std::get<0>(info.param);
  std::ranges::replace(name, '-', '_');
  return name + (std::get<1>(info.param) ? "_paged" : "_contiguous");
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuCacheSequences,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::Bool()), nameOf);
INSTANTIATE_TEST_SUITE_P(Levels, CpuCachePages,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::Values(true)), nameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuCacheSequences);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuCachePages);

} // namespace
} // namespace nsa::test
